package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// pythonsLauncher names the program for the package jacobisolver of Python.
const pythonsLauncher = "JACOBI_LAUNCHER"

// StrayVariables returns a warning for each variable of environ that looks like a key's but is not.
func StrayVariables(environ []string) []string {
	return configs.StrayVariables(environ, append(roster.Variables(), pythonsLauncher))
}

// Warnings returns warnings for the user before ranks start that do not solve, one line each.
func (p *Plan) Warnings(environ []string) []string {
	return slices.Concat(p.StartWarnings(environ), p.Remarks())
}

// StartWarnings returns the warnings about the start of the ranks.
func (p *Plan) StartWarnings(environ []string) []string {
	return slices.Concat(StrayVariables(environ), p.busyCores(runtime.NumCPU()))
}

// Remarks returns the warnings about the problem that the ranks solve. Some are known after Check alone.
func (p *Plan) Remarks() []string {
	list := slices.Concat(p.Notes, p.smallForGPUs())
	if text := p.taken.Unbalanced(); text != "" {
		list = append(list, text)
	}
	return list
}

// JobWarnings returns Remarks and the warnings about the way to the solution.
func (p *Plan) JobWarnings(ctx context.Context) []string {
	list := p.Remarks()
	if e := p.Expects(ctx); e.Warning != "" {
		list = append(list, e.Warning+"; "+e.Do)
	}
	return list
}

// busyCores returns a warning if the ranks on this machine have more threads than it has cores.
func (p *Plan) busyCores(cores int) []string {
	each, ranks := p.Config.Device.Threads, p.RanksHere()
	if ranks == 0 || p.OnGPUs {
		return nil
	}
	if each == 0 {
		if ranks <= max(cores, fewRanks) {
			return nil
		}
		return []string{fmt.Sprintf("%d ranks share %s of this machine: each waits while others compute; -np %d gives "+
			"each a core of its own", ranks, english.Plural(cores, "core", ""), cores)}
	}
	threads := Times(ranks, each)
	if threads <= cores {
		return nil
	}
	return []string{fmt.Sprintf("device.threads %d: %s on this machine keep %d threads busy, and it has %s", each,
		english.Plural(ranks, "rank", ""), threads, english.Plural(cores, "core", ""))}
}

// fewRanks may share cores without a warning. The first run of the documents has so many.
const fewRanks = 4

// Times multiplies positive numbers. If the product overflows, it returns math.MaxInt.
func Times(a, b int) int {
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

// Expectation foresees the end of a run. A text that does not apply is "".
type Expectation struct {
	Warning string // the type of the field cannot attain the tolerance
	Do      string // the remedy of Warning
	Hint    string // another method would be much faster
}

// Expects looks at the problem. The Expectation is empty if the problem has faults, and for a coefficient that is no
// number: all of it would have to be read.
func (p *Plan) Expects(ctx context.Context) (e Expectation) {
	prob, err := p.problem.Again(ctx)
	if err != nil {
		return e // Check reports the problem's faults
	}
	if !prob.Operator().Weighted {
		e, err = p.expects(ctx, prob)
	}
	if errors.Join(err, prob.Close()) != nil {
		return Expectation{}
	}
	return e
}

// many is the number of sweeps from which on a run is told of a method that takes far less time.
const many = 1e4

func (p *Plan) expects(ctx context.Context, prob *problem.Problem) (e Expectation, err error) {
	s, entry := p.Config.Solver, p.Config.Solver.Entry()
	largest, err := prob.Largest(ctx)
	if err != nil {
		return e, err
	}
	e.Warning, e.Do = p.tooFine(largest)
	sweeps := math.Log(1e8) / prob.LeastEigenvalue() // until the norm has fallen by a factor of 1e8, or some more
	if e.Warning == "" && entry.Instead != "" && s.Tolerance+s.RelativeTolerance > 0 &&
		min(sweeps, float64(s.MaxIterations)) >= many {
		e.Hint = fmt.Sprintf("solver.method %s meets a tolerance in far less time, mostly in 5 to 20 cycles",
			entry.Instead)
	}
	return e, nil
}

// tooFine warns of a tolerance that is far below what rounding leaves of the norm: about half a unit in the last place
// of the values, at every point. Otherwise what and do are empty.
func (p *Plan) tooFine(largest float64) (what, do string) {
	s, m := p.Config.Solver, p.Mesh
	values := largest * math.Sqrt(float64(m.NX)*float64(m.NY))
	left := func(t solver.DType) float64 {
		if t == solver.Float32 {
			return 0x1p-24 * values
		}
		return 0x1p-53 * values
	}
	key, value, target := "solver.tolerance", s.Tolerance, s.Tolerance
	if relative := s.RelativeTolerance * values; relative > target { // the first norm is hardly larger than the values'
		key, value, target = "solver.relative_tolerance", s.RelativeTolerance, relative
	}
	const far = 100
	if target == 0 || target >= left(m.DType)/far {
		return "", ""
	}
	what = fmt.Sprintf("%s %g is below what %s attains on this mesh", key, value, m.DType)
	if m.DType == solver.Float32 && target >= left(solver.Float64) {
		return what, "grid.dtype=float64 attains it"
	}
	return what, "a larger one is met"
}

// Several GPUs of a node cannot do a sweep faster than this, however small their stripes are: see "Single node" and
// "Eight GPUs" in docs/results.md.
const (
	sweepOnFour  = 2.0e-6 // seconds, on two to four GPUs
	sweepOnEight = 5.1e-6 // on five GPUs and more: measured on eight
)

// clearly is the least share of time that a warning must promise to save.
const clearly = 0.2

// smallForGPUs returns a warning if a mesh is so small that one GPU would sweep it clearly faster than the GPUs of this
// machine together.
func (p *Plan) smallForGPUs() []string {
	if p.Config.Solver.Step() != methods.Sweep || len(p.Names()) > 1 {
		return nil
	}
	used := map[int]bool{}
	for _, c := range p.Choices {
		if c != nil {
			used[c.Index] = true
		}
	}
	together := sweepOnFour
	if len(used) > 4 {
		together = sweepOnEight
	}
	fixed, rate := cuda.Pace(p.Mesh.DType)
	one := fixed + float64(p.Mesh.NX)*float64(p.Mesh.NY)/rate
	if len(used) < 2 || one > (1-clearly)*together {
		return nil
	}
	us := func(seconds float64) time.Duration { return time.Duration(seconds*1e9) / 100 * 100 }
	return []string{fmt.Sprintf("one GPU would be about %.1f times as fast as %d: it sweeps %d x %d points in "+
		"about %v, and several GPUs need %v for a sweep of any mesh; use -np 1", together/one, len(used), p.Mesh.NX,
		p.Mesh.NY, us(one), us(together))}
}
