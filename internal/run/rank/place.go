package rank

import (
	"errors"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/observe/farfiles"
	"jacobi/internal/observe/output"
)

// outputPlace is where the files of a run go. It is empty if the run writes none.
type outputPlace struct {
	output.Place                 // where rank 0 creates the files
	held         *output.Held    // output.dir, on rank 0 of a run without a launcher; otherwise nil
	far          *farfiles.Place // output.dir, if another process holds it; otherwise nil
}

// findPlace determines where the files go. The launcher holds output.dir; without a launcher rank 0 does. A rank that
// sees that directory writes to it directly, any other rank writes over NATS.
func (r *run) findPlace() (outputPlace, error) {
	c := r.Config.Output
	if len(c.Names()) == 0 {
		return outputPlace{}, nil
	}
	if r.id.Rank == 0 && !r.launched() {
		held, err := r.hold(c)
		if err != nil {
			return outputPlace{}, err
		}
		place := outputPlace{Place: held, held: held}
		if r.alone() {
			return place, nil
		}
		serve := farfiles.Options{Conn: r.conn, RunID: r.id.RunID, Dir: held, Output: c, Log: r.Log}
		stop, err := farfiles.Serve(serve)
		if err != nil {
			return outputPlace{}, err
		}
		r.open.add(func() error { stop(); return nil })
		return place, nil
	}
	far, err := farfiles.Find(r.team.Context(), r.conn, r.id.RunID, r.fileTimeout())
	if err != nil {
		return outputPlace{}, err
	}
	if r.id.Rank == 0 && !far.See(c.Dir) {
		r.Log.Info("outputs go over NATS", zap.String("to", far.Host()))
	}
	return outputPlace{Place: far, far: far}, nil
}

// hold locks output.dir for this run.
func (r *run) hold(c configs.Output) (*output.Held, error) {
	if err := errors.Join(output.CheckDir(c.Dir), output.CheckNames(c)); err != nil {
		return nil, err
	}
	held, notes, err := output.Hold(c.Dir, r.id.RunID)
	if err != nil {
		return nil, err
	}
	r.open.add(held.Close)
	for _, note := range append(notes, held.Replace(c)) {
		if note != "" {
			r.Log.Info(note)
		}
	}
	return held, nil
}
