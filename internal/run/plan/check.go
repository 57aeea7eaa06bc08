package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/ballast"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/checkpoint"
)

// Fault is a reason why a run would fail after its start.
type Fault struct {
	Err error
	Do  string // the remedy
}

// Remedies.
const (
	CorrectProblem = "correct the expression or file that it names"
	CorrectOutput  = "make it a directory that you may write, with room, or set output.dir to another one"
)

// Check returns, in one error, everything that would make the run fail after its start. With create it creates the
// directories of outputs and checkpoints.
func (p *Plan) Check(ctx context.Context, create bool) error { return join(p.Faults(ctx, create)) }

// CheckJob is Check of a job on ranks that have started, whose directories are known to be good.
func (p *Plan) CheckJob(ctx context.Context) error {
	return join(append(p.jobFaults(ctx), Fault{Err: p.checkFiles()}))
}

func join(faults []Fault) error {
	var errs []error
	for _, f := range faults {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

func sum(values []int64) (total int64) {
	for _, v := range values {
		total += v
	}
	return total
}

// Faults returns the faults that Check reports.
func (p *Plan) Faults(ctx context.Context, create bool) []Fault {
	all := append(p.jobFaults(ctx), Fault{p.checkOutput(create), CorrectOutput},
		Fault{p.checkCheckpoints(ctx, create), "make it a directory that you may write, with room, or name another " +
			"one"})
	return slices.DeleteFunc(all, func(f Fault) bool { return f.Err == nil })
}

// jobFaults are faults of any job: of its size and of its problem. Parts may have no error.
func (p *Plan) jobFaults(ctx context.Context) []Fault {
	tooLarge := p.checkMemory()
	return []Fault{
		{tooLarge, "take a smaller grid or grid.dtype float32, fewer ranks on this machine, or more machines"},
		{p.checkProblem(ctx, tooLarge == nil), CorrectProblem},
	}
}

// few is the number of points up to which ballast takes longer than the collections that it saves.
const few = 1 << 18

// checkProblem checks the expressions and the files of the problem. With values it also checks values of the field,
// which takes memory, and takes the contents of the files, which then have to be those that the ranks read.
func (p *Plan) checkProblem(ctx context.Context, values bool) error {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return err
	}
	if values {
		var b []byte
		if m := prob.Mesh(); int64(m.NX)*int64(m.NY) > few {
			b = ballast.New() // the rows of a weighted problem fill a small heap every few rows
		}
		err = prob.Check(ctx)
		runtime.KeepAlive(b)
	}
	if err == nil && values {
		p.Contents, err = prob.Contents(ctx)
	}
	return errors.Join(err, prob.Close())
}

func (p *Plan) checkOutput(create bool) error {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, os.ErrNotExist) && !create {
		return nil
	}
	if err := output.CheckFree(o.Dir); err != nil {
		return err
	}
	return p.checkFiles()
}

// checkFiles checks the names of the outputs and, where output.dir exists, their sizes.
func (p *Plan) checkFiles() error {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil
	}
	if err := output.CheckNames(o); err != nil {
		return err
	}
	if _, err := os.Stat(o.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	room, err := p.Room()
	if err != nil {
		return err
	}
	return output.CheckRoom(o.Dir, room.Bytes())
}

// checkCheckpoints refuses a checkpoint from which the run cannot go on, and a directory to which no checkpoint can be
// written. With create it creates the directory. It does not check buckets: the ranks do.
func (p *Plan) checkCheckpoints(ctx context.Context, create bool) error {
	c := p.Config.Checkpoint
	if !c.On() && c.Resume == "" {
		return nil
	}
	identity, err := p.identity()
	if err != nil {
		return err
	}
	var faults []error
	if dir, _ := configs.SplitPlace(c.Resume); dir != "" {
		if err := checkpoint.CheckResume(ctx, dir, identity, p.Config.Solver); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.resume %q: %w", dir, err))
		}
	}
	if c.On() && len(p.GPUs) > 0 {
		if err := configs.CheckMemory(p.copyBytes()); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.every %q: copies of the stripes: %w", c.Every, err))
		}
	}
	if c.On() && c.Dir != "" {
		if err := dirlock.Check(c.Dir); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		} else if err := checkpoint.CheckDir(ctx, c.Dir, identity, c.Keep, sum(p.Saved), create); err != nil {
			faults = append(faults, fmt.Errorf("checkpoint.dir %q: %w", c.Dir, err))
		}
	}
	return errors.Join(faults...)
}

// identity returns what must be the same in a run that goes on from a checkpoint. Without contents the problem has
// faults, which checkProblem reports.
func (p *Plan) identity() (checkpoint.Problem, error) {
	fields, err := configs.FieldKeys(p.Config)
	return checkpoint.Problem{Fields: fields, Contents: p.Contents}, err
}
