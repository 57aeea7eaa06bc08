// Package backendtest is the conformance suite of solver.Backend. It drives several backends as the ranks of one run
// and compares them, bit for bit, with the iteration over the whole mesh.
package backendtest

import (
	"fmt"
	"testing"

	"jacobi/internal/reference"
	"jacobi/solver"
)

// Factory opens a backend.
type Factory func(solver.Layout) (solver.Backend, error)

// Case is one run. It uses up a full halo of Depth rows in passes of Sweeps sweeps (the last pass takes the rest) and
// exchanges edges, Passes times over. A shorter pass follows at the end.
type Case struct {
	Mesh solver.Mesh
	Update
	Ranks  int
	Depth  int
	Sweeps int // in a pass; 0: Depth
	Passes int // exchanges
	// Weights are those of the sweeps. Passes end where weighted sweeps begin or end.
	Weights solver.Weights
	Norms   solver.Cadence // which plain sweeps have a norm
}

// String names a case.
func (c Case) String() string {
	kind := ""
	switch w := c.Mesh.Walls; w {
	case solver.Walls{}:
	case solver.WrapRows(true):
		kind = " periodic"
	default:
		const letters = "fpn"
		kind = fmt.Sprintf(" walls %c%c%c%c", letters[w.Left], letters[w.Right], letters[w.Top], letters[w.Bottom])
	}
	if u := c.Update.String(); u != "" {
		kind += " " + u
	}
	if len(c.Weights) > 0 {
		kind += " weighted"
	}
	if every := c.Norms.Stride; every > 1 {
		kind += fmt.Sprintf(" norm every %d", every)
	}
	return fmt.Sprintf("%dx%d %v%s ranks %d depth %d by %d", c.Mesh.NX, c.Mesh.NY, c.Mesh.DType, kind, c.Ranks,
		c.Depth, c.step())
}

func (c Case) step() int {
	if c.Sweeps > 0 {
		return c.Sweeps
	}
	return c.Depth
}

// Run checks a backend on the standard cases: the plain average between fixed walls, or with periodic top and bottom.
func Run(t *testing.T, factory Factory) {
	for _, c := range Cases() {
		t.Run(c.String(), func(t *testing.T) { RunCase(t, factory, c) })
	}
	t.Run("not finite", func(t *testing.T) { runNotFinite(t, factory) })
	t.Run("misuse", func(t *testing.T) { runMisuse(t, factory) })
	t.Run("order", func(t *testing.T) { runOrder(t, factory) })
	t.Run("not loaded", func(t *testing.T) { runNotLoaded(t, factory) })
}

// RunOperators checks a backend on all operators and walls (OperatorCases).
func RunOperators(t *testing.T, factory Factory) {
	for _, c := range OperatorCases() {
		t.Run(c.String(), func(t *testing.T) { RunCase(t, factory, c) })
	}
	t.Run("unreadable", func(t *testing.T) { runUnreadable(t, factory) })
}

// RunWeights checks a backend on sweeps with weights (WeightCases).
func RunWeights(t *testing.T, factory Factory) {
	for _, c := range WeightCases() {
		t.Run(c.String(), func(t *testing.T) { RunCase(t, factory, c) })
	}
	t.Run("mixed", func(t *testing.T) { runMixed(t, factory) })
}

// RunNorms checks a backend on sweeps of which some have no norm (NormCases).
func RunNorms(t *testing.T, factory Factory) {
	for _, c := range NormCases() {
		t.Run(c.String(), func(t *testing.T) { RunCase(t, factory, c) })
	}
	t.Run("no norms", func(t *testing.T) { runNoNorms(t, factory) })
}

// RunCase checks a backend on one case: the sums of every plain sweep, the field after every pass, Undo, and the replay
// of part of a pass.
func RunCase(t *testing.T, factory Factory, c Case) {
	seed := uint64(c.Mesh.NX*1000 + c.Mesh.NY)
	f, op := newField(c.Mesh, seed), newOperator(c, seed)
	ref, err := reference.New(c.Mesh, op, f, c.magnitude(op, f.largest))
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(c, f, op, factory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	c.Sweeps = min(c.step(), r.backends[0].Limits().MaxSweeps)
	sweep := 0
	step := func(b solver.Pass, exchange bool) {
		t.Helper()
		b.First, b.Weighted = sweep, c.Weights.At(sweep) != 0
		got, err := r.pass(b, exchange)
		if err != nil {
			t.Fatalf("%+v: %v", b, err)
		}
		for i := range b.Sweeps {
			if b.Weighted {
				ref.WeightedSweep(c.Weights.At(sweep + i))
				continue
			}
			want := ref.Sweep()
			if !c.Norms.Has(b.First + i) {
				continue
			}
			if got[0] != want {
				t.Errorf("%+v: sweep %d of the pass: sum %v, want %v", b, i, got[0], want)
			}
			got = got[1:]
		}
		sweep += b.Sweeps
		if err := r.equal(ref.Rows); err != nil {
			t.Fatalf("%+v: %v", b, err)
		}
	}
	for range c.Passes {
		for left := c.Depth; left > 0; {
			n := c.Weights.Alike(sweep, min(c.step(), left))
			left -= n
			step(solver.Pass{Sweeps: n, Margin: left}, left == 0)
		}
	}
	// Undo a deep pass and replay part of it, as when a run ends inside it.
	n := c.Weights.Alike(sweep, c.step())
	deep := solver.Pass{First: sweep, Sweeps: n, Weighted: c.Weights.At(sweep) != 0}
	if _, err := r.pass(deep, n == c.Depth); err != nil {
		t.Fatal(err)
	}
	if err := r.undo(); err != nil {
		t.Fatal(err)
	}
	if err := r.equal(ref.Rows); err != nil {
		t.Fatalf("after Undo: %v", err)
	}
	step(solver.Pass{Sweeps: max(1, n/2)}, false)
}

// Cases returns the standard cases. They cover each row width that a kernel may treat differently, with varied ranks,
// depths and boundaries.
func Cases() []Case {
	var cases []Case
	both := []solver.DType{solver.Float32, solver.Float64}
	add := func(types []solver.DType, nx, ny, ranks, depth, sweeps int) {
		interior := solver.Mesh{NX: nx, NY: ny}.Interior()
		// Stripes of a small mesh have too few rows for the requested ranks and depth, so both are reduced.
		for ranks > 1 && solver.MaxRanks(interior, depth) < ranks {
			ranks--
		}
		for depth > 1 && solver.MaxRanks(interior, depth) < ranks {
			depth--
		}
		for _, d := range types {
			for _, periodic := range []bool{false, true} {
				cases = append(cases, Case{Mesh: solver.Mesh{NX: nx, NY: ny, DType: d,
					Walls: solver.WrapRows(periodic)},
					Ranks: ranks, Depth: depth, Sweeps: min(sweeps, depth), Passes: 2})
			}
		}
	}
	depths := []int{1, 2, 3, 5, 8}
	for i, nx := range []int{3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 68, 100, 127, 128, 129, 130,
		191, 193, 257, 300} {
		add(both, nx, 41+i%9, 1+i%5, depths[i%len(depths)], 0)
	}
	for i, ny := range []int{3, 4, 5, 7, 8, 9, 10, 11, 15, 16, 17, 18, 23, 24, 25, 26, 33, 64, 67} {
		add(both[i%2:i%2+1], 70, ny, 1+i%3, depths[i%len(depths)], 0)
		add(both[(i+1)%2:(i+1)%2+1], 13, ny, 1, depths[(i+2)%len(depths)], 0)
	}
	// Halos used up in several passes, and deep halos.
	add(both, 77, 50, 2, 8, 3)
	add(both, 77, 50, 3, 5, 2)
	add(both, 140, 60, 2, 7, 1)
	add(both, 140, 90, 2, 16, 0)
	add(both, 200, 80, 1, 32, 0)
	add(both, 1100, 40, 2, 12, 5)
	return cases
}
