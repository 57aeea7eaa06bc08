package oracle_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// problems is the number of random problems; ORACLE=5000 solves more, and ORACLE_SEED=7 one alone.
const problems = 200

// A run of a random problem ends with a field whose update is as small as it says: "converged" is true, the norm is
// that of the equations, and no value is NaN. "At most" holds for its error. "About" is within 3 of it, but for few
// runs, and never 10 below. Any number of ranks gives the same field and verdict.
func TestRandomProblems(t *testing.T) {
	t.Parallel()
	first, count := seeds(t, problems)
	refused, rough := 0, 0
	for seed := first; seed < first+count; seed++ {
		c := newTrial(seed)
		factor, err := c.try(t)
		switch {
		case err != nil:
			t.Logf("seed %d: refused: %v", seed, err)
			refused++
		case factor > 3 || factor < 1./3:
			t.Logf("seed %d: about %.2g times the error", seed, factor)
			rough++
		}
	}
	if refused > 2+int(count)/5 {
		t.Errorf("%d of %d problems were refused", refused, count)
	}
	if rough > 2+int(count)/25 {
		t.Errorf("%d of %d estimates are not within 3 of the error", rough, count)
	}
}

// seeds returns the first seed of a test and how many there are, unless ORACLE or ORACLE_SEED say more.
func seeds(t *testing.T, otherwise uint64) (first, count uint64) {
	if testing.Short() {
		otherwise /= 6
	}
	return allSeeds(t, otherwise)
}

// allSeeds is seeds for a test that is not cut short.
func allSeeds(t *testing.T, otherwise uint64) (first, count uint64) {
	if seed := number(t, "ORACLE_SEED", 0); seed > 0 {
		return seed, 1
	}
	return 0, number(t, "ORACLE", otherwise)
}

// number returns the number in an environment variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// trial is a random problem and how it is solved.
type trial struct {
	*random
	seed  uint64
	ranks int // to compare with one rank; 1 for none
}

func newTrial(seed uint64) trial {
	c := trial{newRandom(seed), seed, 1}
	c.set("problem.preset", "dirichlet")
	method, tolerance := "multigrid", math.Pow(10, -2-10*c.Float64())
	switch n := c.IntN(8); {
	case n == 0 || c.Mesh.DType == solver.Float32:
		method = "jacobi"
		tolerance = math.Pow(10, -1-4*c.Float64())
		c.set("solver.max_iterations", "%d", 3+c.IntN(3000))
	case n <= 2:
		c.set("solver.max_iterations", "%d", 1+c.IntN(30))
	}
	c.set("solver.method", "%s", method)
	c.set("grid.dtype", "%s", c.Mesh.DType)
	c.set("solver.tolerance", "%.3g", tolerance*c.scale)
	if c.IntN(10) == 0 {
		most := solver.MaxRanks(c.Mesh.Interior(), 16)
		c.ranks = 1 + c.IntN(max(1, min(8, most)))
	}
	return c
}

// try runs the trial and checks the outcome. It returns the estimate of the error divided by the error, or 1 where
// there is no error but rounding. The run was refused if there is an error.
func (c trial) try(t *testing.T) (float64, error) {
	o, err := run(t, 1, c.keys...)
	if err != nil {
		return 0, err
	}
	fail := func(format string, args ...any) {
		t.Errorf("seed %d: %s\n\t%s", c.seed, fmt.Sprintf(format, args...), c)
	}
	for i, v := range o.field {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			fail("%v at point %d", v, i)
			return 1, nil
		}
	}
	e := oracle.NewEquations(c.Problem)
	norm, noise := c.norm(e, o.field)
	if o.Method == "multigrid" && math.Abs(*o.Norm-norm) > 1e-6*norm+noise {
		fail("norm %g, that of the equations is %g", *o.Norm, norm)
	}
	if o.Converged && norm > o.Tolerance*(1+1e-6)+noise {
		fail("converged with a norm of %g, tolerance %g", norm, o.Tolerance)
	}
	c.compare(t, o)
	u, err := e.Solve()
	if err != nil {
		t.Logf("seed %d: %v: %s", c.seed, err, c)
		return 1, nil
	}
	worst := 0.0
	for at := range u {
		if e.Free(at) {
			worst = max(worst, math.Abs(u[at]-o.field[at]))
		}
	}
	if norm <= 2*noise {
		return 1, nil
	}
	if o.Accuracy.Error == nil && o.Sweeps == 0 { // the estimate of a weighted problem needs a cycle
		return 1, nil
	}
	if *o.Accuracy.Error < worst/10 {
		fail("about %g, but the error is %g", *o.Accuracy.Error, worst)
	}
	return *o.Accuracy.Error / worst, nil
}

// norm returns the norm of the equations, and by how much that of a run may differ: rounding in the type of the mesh,
// and the sums of groups being cut to the unit of a field that begins at the scale of the data.
func (c trial) norm(e *oracle.Equations, u []float64) (norm, noise float64) {
	squares, largest := 0.0, 0.0
	for _, d := range e.Defect(u) {
		squares += d * d
	}
	for _, v := range u {
		largest = max(largest, math.Abs(v))
	}
	eps := 0x1p-53
	if c.Mesh.DType == solver.Float32 {
		eps = 0x1p-24
	}
	blind := solver.Blind(c.Mesh, solver.MagnitudeOf(max(largest, c.scale))+1)
	return math.Sqrt(squares), 4*eps*largest*math.Sqrt(float64(len(u))) + blind
}

// compare runs the trial with several ranks and compares that with the outcome of one.
func (c trial) compare(t *testing.T, one outcome) {
	if c.ranks == 1 {
		return
	}
	o, err := run(t, c.ranks, c.keys...)
	switch {
	case err != nil:
		t.Errorf("seed %d: %d ranks: %v\n\t%s", c.seed, c.ranks, err, c)
	case o.FieldHash != one.FieldHash || o.Sweeps != one.Sweeps || o.StopReason != one.StopReason ||
		*o.Norm != *one.Norm || !reflect.DeepEqual(o.Accuracy, one.Accuracy):
		t.Errorf("seed %d: %d ranks: %s; 1 rank: %s\n\t%s", c.seed, c.ranks, o.words(), one.words(), c)
	}
}

func (o outcome) words() string {
	return fmt.Sprintf("%d iterations (%s), norm %g, error %g, field %s", o.Sweeps, o.StopReason, *o.Norm,
		*o.Accuracy.Error, o.FieldHash)
}
