package oracle_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// loose is the number of random problems whose constant nothing determines; ORACLE and ORACLE_SEED say as for
// TestRandomProblems.
const loose = 200

// A run of a random problem whose sides are all insulated or periodic has the solution with the mean 0 of the equations
// from whose source the mean is taken off, and says how much that is. Any number of ranks gives the same field.
func TestRandomLooseProblems(t *testing.T) {
	t.Parallel()
	first, count := seeds(t, loose)
	solved, rough := 0, 0
	for seed := first; seed < first+count; seed++ {
		c := newLoose(t, seed)
		o, err := run(t, 1, c.keys...)
		e := oracle.NewEquations(c.Problem)
		taken, gross, driven := e.Loosen(c.Problem)
		if driven != 1 {
			want := "second part of the material"
			if driven == 0 {
				want = "the field would be 0 everywhere"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("seed %d: %v, want a refusal with %q\n\t%s", seed, err, want, c)
			}
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v\n\t%s", seed, err, c)
			continue
		}
		u, err := e.Solve()
		if err != nil {
			t.Logf("seed %d: %v: %s", seed, err, c)
			continue
		}
		e.Center(u, c.Problem)
		solution, worst := 0.0, 0.0
		for at := range u {
			solution, worst = max(solution, math.Abs(u[at])), max(worst, math.Abs(u[at]-o.field[at]))
		}
		off := o.Setup.TakenOff
		if math.Abs(off.Amount-taken) > 1e-14*gross || !(math.Abs(off.Relative) <= math.Abs(taken)/gross*(1+1e-12)) {
			t.Errorf("seed %d: %+v is taken off, want %g of %g\n\t%s", seed, *off, taken, gross, c)
		}
		if math.Abs(*o.Results.Mean) > 1e-15*solution {
			t.Errorf("seed %d: the mean is %g, the largest value %g\n\t%s", seed, *o.Results.Mean, solution, c)
		}
		solved++
		c.compare(t, o)
		if o.Accuracy.Uncertain { // neither the run nor the oracle is right to many digits
			continue
		}
		if o.Converged && worst > 1e-6*solution+1e-15*gross {
			t.Errorf("seed %d: %s: %g off %g\n\t%s", seed, o.words(), worst, solution, c)
		}
		if o.Accuracy.Error == nil || o.Accuracy.Rounding || worst < 1e-12*solution {
			continue
		}
		if about := *o.Accuracy.Error; about < worst/10 && c.Materials == nil {
			t.Errorf("seed %d: about %g, but the error is %g of %g\n\t%s", seed, about, worst, solution, c)
		} else if about > 3*worst || about < worst/3 {
			t.Logf("seed %d: about %.2g times the error", seed, about/worst)
			rough++
		}
	}
	t.Logf("%d of %d are solved, %d estimates are not within 3 of the error", solved, count, rough)
	if seeds := int(count); seeds > 20 && solved < seeds/2 || rough > 2+seeds/10 {
		t.Errorf("%d of %d are solved, %d estimates are not within 3 of the error", solved, count, rough)
	}
}

// newLoose returns the problem of a seed. Half have materials.
func newLoose(t *testing.T, seed uint64) trial {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 3)), scale: 1}
	c := trial{r, seed, 1}
	m := &r.Mesh
	m.NX, m.NY, m.DType = r.size(), r.size(), solver.Float64
	m.Walls = solver.Walls{Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}
	if r.chance(0.4) {
		m.Walls.Left, m.Walls.Right = solver.Periodic, solver.Periodic
	}
	if r.chance(0.4) {
		m.Walls.Top, m.Walls.Bottom = solver.Periodic, solver.Periodic
	}
	r.Width, r.Height = 1, float64(solver.Intervals(m.NY, m.Walls.Top))/float64(solver.Intervals(m.NX, m.Walls.Left))
	if r.chance(0.5) {
		r.Height *= math.Exp(2*r.Float64() - 1)
	}
	r.set("grid.nx", "%d", m.NX)
	r.set("grid.ny", "%d", m.NY)
	r.set("grid.width", "%.17g", r.Width)
	r.set("grid.height", "%.17g", r.Height)
	source := r.term(30)
	r.Source = r.field(source)
	r.set("problem.source", "%s", source)
	r.Initial = r.field(zero())
	r.texts()
	if r.chance(0.5) {
		r.Materials = &oracle.Materials{Screening: make([]float64, m.NX*m.NY), Coefficient: r.coefficients()}
		r.periodic()
		r.array("problem.coefficient", filepath.Join(t.TempDir(), "a.npy"), r.Materials.Coefficient)
	}
	r.set("solver.relative_tolerance", "%.3g", math.Pow(10, -8-2*r.Float64()))
	if r.IntN(4) == 0 {
		c.ranks = 1 + r.IntN(max(1, min(8, solver.MaxRanks(m.Interior(), 8))))
	}
	return c
}
