// Package backendtest is the conformance suite of solver.Backend. It drives several backends as the ranks of one run
// and compares them, bit for bit, with the iteration over the whole mesh.
package backendtest

import (
	"fmt"
	"testing"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
)

// Factory opens a backend.
type Factory func(solver.Layout) (solver.Backend, error)

// Kind is a way to open a backend, under a name. All kinds of one suite do the same number of sweeps a pass.
type Kind struct {
	Name string
	Open Factory
}

// Case is one run. It uses up a full halo of Depth rows in passes of Sweeps sweeps (the last pass takes the rest) and
// exchanges edges, Passes times over. A shorter pass follows at the end.
type Case struct {
	Mesh solver.Mesh
	Update
	Ranks  int
	Depth  int
	Sweeps int            // in a pass; 0: Depth
	Passes int            // exchanges
	Norms  solver.Cadence // which sweeps have a norm
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

// Run checks backends on the standard cases: the plain average between fixed walls, or with periodic top and bottom.
func Run(t *testing.T, kinds ...Kind) {
	runCases(t, Cases(), kinds)
	for _, part := range []struct {
		name string
		run  func(*testing.T, Factory)
	}{{"not finite", runNotFinite}, {"misuse", runMisuse}} {
		eachKind(t, part.name, kinds, part.run)
	}
}

// RunOperators checks backends on the plain average and the general operator, and on all walls (OperatorCases).
func RunOperators(t *testing.T, kinds ...Kind) {
	runCases(t, OperatorCases(), kinds)
	eachKind(t, "unreadable", kinds, runUnreadable)
}

// RunWeighted checks backends on the weighted operator and all walls (WeightedCases).
func RunWeighted(t *testing.T, kinds ...Kind) {
	runCases(t, WeightedCases(), kinds)
	eachKind(t, "unreadable", kinds, runUnreadableWeights)
}

// RunNorms checks backends on sweeps some of which have no norm (NormCases).
func RunNorms(t *testing.T, kinds ...Kind) {
	runCases(t, NormCases(), kinds)
	eachKind(t, "no norms", kinds, runNoNorms)
}

// eachKind checks every kind.
func eachKind(t *testing.T, name string, kinds []Kind, check func(*testing.T, Factory)) {
	for _, k := range kinds {
		t.Run(name+"/"+k.Name, func(t *testing.T) { check(t, k.Open) })
	}
}

// runCases checks backends on cases, and with -short on a sample of them: the oracle is slow under the race detector.
// It has each kind of wall, each part of an operator and both types.
func runCases(t *testing.T, cases []Case, kinds []Kind) {
	step := 1
	if testing.Short() {
		step = 37
	}
	for i := 0; i < len(cases); i += step {
		t.Run(cases[i].String(), func(t *testing.T) { RunCase(t, cases[i], kinds...) })
	}
}

// RunCase checks backends on one case: the sums of every sweep, the field after every pass, Undo, and the replay of
// part of a pass. It sweeps the whole mesh once for all of them.
func RunCase(t *testing.T, c Case, kinds ...Kind) {
	seed := uint64(c.Mesh.NX*1000 + c.Mesh.NY)
	f, op := newField(c.Mesh, seed), newOperator(c, seed)
	ref, err := reference.New(c.Mesh, op, f, magnitude(op, f.largest))
	if err != nil {
		t.Fatal(err)
	}
	runs := make([]*ranks, len(kinds))
	defer func() {
		for _, r := range runs {
			if r == nil {
				continue
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}()
	c.Sweeps = c.step()
	for i, k := range kinds {
		if runs[i], err = open(c, f, op, k.Open); err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		most := runs[i].backends[0].Limits().MaxSweeps
		if i > 0 && min(c.Sweeps, most) != c.Sweeps {
			t.Fatalf("%s does %d sweeps a pass, %s more", k.Name, most, kinds[0].Name)
		}
		c.Sweeps = min(c.Sweeps, most)
	}
	each := func(what any, check func(r *ranks) error) {
		t.Helper()
		for i, r := range runs {
			if err := check(r); err != nil {
				t.Fatalf("%s: %+v: %v", kinds[i].Name, what, err)
			}
		}
	}
	sweep := 0
	step := func(b solver.Pass, exchange bool) {
		t.Helper()
		b.First = sweep
		var want []solver.Sum
		for range b.Sweeps {
			if sum := ref.Sweep(); c.Norms.Has(sweep) {
				want = append(want, sum)
			}
			sweep++
		}
		each(b, func(r *ranks) error {
			got, err := r.pass(b, exchange)
			if err != nil {
				return err
			}
			for i := range want {
				if got[i] != want[i] {
					return fmt.Errorf("norm %d of the pass: sum %v, want %v", i, got[i], want[i])
				}
			}
			return r.equal(ref.Rows)
		})
	}
	for range c.Passes {
		for left := c.Depth; left > 0; {
			n := min(c.step(), left)
			left -= n
			step(solver.Pass{Sweeps: n, Margin: left}, left == 0)
		}
	}
	// Undo a deep pass and replay part of it, as when a run ends inside it.
	n := c.step()
	each("undo", func(r *ranks) error {
		if _, err := r.pass(solver.Pass{First: sweep, Sweeps: n}, n == c.Depth); err != nil {
			return err
		}
		if err := r.undo(); err != nil {
			return err
		}
		return r.equal(ref.Rows)
	})
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
