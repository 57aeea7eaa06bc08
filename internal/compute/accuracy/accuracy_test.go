package accuracy_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/oracle"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// made is a problem with random data; its initial field stands for the field of a run.
type made struct {
	oracle.Problem
	h, q float64
	b    []float64
}

func newMade(seed uint64, nx, ny int, w solver.Walls, pinned bool) *made {
	r := rand.New(rand.NewPCG(seed, 2))
	p := &made{Problem: oracle.Problem{Mesh: solver.Mesh{NX: nx, NY: ny, Walls: w, DType: solver.Float64}, Width: 1,
		Height: 0.3, Screening: 7}}
	for range nx * ny {
		p.Initial, p.Source = append(p.Initial, r.Float64()), append(p.Source, r.Float64())
		p.Fixed = append(p.Fixed, pinned && r.Float64() < 0.1)
	}
	for iy := range ny { // copies
		for ix := range nx {
			from := iy*nx + ix
			if p.Problem.Mesh.PeriodicColumns() {
				from = iy*nx + 1 + (ix-1+nx-2)%(nx-2)
			}
			if p.Problem.Mesh.PeriodicRows() {
				from = from%nx + (1+(iy-1+ny-2)%(ny-2))*nx
			}
			p.Initial[iy*nx+ix], p.Fixed[iy*nx+ix] = p.Initial[from], p.Fixed[from]
		}
	}
	hx, hy := 1/float64(solver.Intervals(nx, w.Left)), 0.3/float64(solver.Intervals(ny, w.Top))
	rho := hx / hy * (hx / hy)
	d := 2*(1+rho) + 7*hx*hx
	p.h, p.q = (1+rho)/d, rho/(1+rho)
	for _, f := range p.Source {
		p.b = append(p.b, f*hx*hx/d)
	}
	return p
}

func (p *made) Mesh() solver.Mesh { return p.Problem.Mesh }
func (p *made) Weighted() bool    { return false }

func (p *made) Operator() solver.Operator {
	return solver.Operator{Scale: p.h, Blend: p.q, Values: p, Fixed: p}
}

func (p *made) put(iy int, dst []byte, from []float64) error {
	nx := p.Problem.Mesh.NX
	for i, v := range from[iy*nx : (iy+1)*nx] {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	}
	return nil
}

func (p *made) Row(iy int, dst []byte) error                      { return p.put(iy, dst, p.Initial) }
func (p *made) ValueRow(iy int, _ solver.Value, dst []byte) error { return p.put(iy, dst, p.b) }
func (p *made) FixedRow(iy int, dst []bool) error {
	copy(dst, p.Fixed[iy*p.Problem.Mesh.NX:])
	return nil
}

// collect tallies the field by the given number of ranks.
func (p *made) collect(t *testing.T, ranks int) accuracy.Part {
	t.Helper()
	m := p.Mesh()
	stripes, err := solver.Partition(m.Interior(), ranks, 1)
	if err != nil {
		t.Fatal(err)
	}
	var all []*results.Rows
	var tallies []*accuracy.Tally
	for _, s := range stripes {
		tally := accuracy.New(p, s, true)
		rows := results.NewRows(p, s, tally)
		for iy := s.Lo; iy < s.Hi; iy++ {
			row := make([]byte, m.RowBytes())
			_ = p.Row(iy, row)
			if err := rows.AddRows(iy, row); err != nil {
				t.Fatal(err)
			}
		}
		all, tallies = append(all, rows), append(tallies, tally)
	}
	var parts []accuracy.Part
	for i, rows := range all {
		var next []byte
		if i+1 < len(all) || m.PeriodicRows() {
			next = make([]byte, m.RowBytes())
			_ = p.Row(stripes[(i+1)%len(all)].Lo, next)
		}
		if err := rows.End(next); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, tallies[i].Part())
	}
	return accuracy.Merge(parts)
}

// The largest value is NaN if one value is, wherever it stands, so that no estimate hides it.
func TestLargestOfNaN(t *testing.T) {
	const nx, ny = 16, 26
	for at := nx; at < nx*(ny-1); at += 7 {
		p := newMade(1, nx, ny, solver.Walls{}, false)
		p.Initial[at] = math.NaN()
		if got := p.collect(t, 3).Largest; !math.IsNaN(got) {
			t.Errorf("value %d: %v, want NaN", at, got)
		}
	}
}

// On a mesh with as many blocks as points, the correction is the error, whatever its walls and the ranks are.
func TestCorrectionOfASmallMesh(t *testing.T) {
	const periodic, neumann = solver.Periodic, solver.Neumann
	for i, w := range []solver.Walls{{}, {Left: neumann}, {Bottom: neumann, Right: neumann}, {Top: neumann},
		{Left: neumann, Right: neumann, Top: neumann, Bottom: neumann}, {Top: periodic, Bottom: periodic},
		{Left: periodic, Right: periodic, Top: neumann},
		{Left: periodic, Right: periodic, Top: periodic, Bottom: periodic}} {
		for _, pinned := range []bool{false, true} {
			t.Run(fmt.Sprint(w, pinned), func(t *testing.T) {
				p := newMade(uint64(i), 12, 26, w, pinned)
				e := oracle.NewEquations(p.Problem)
				errors, err := e.Correction(e.Defect(p.Initial))
				if err != nil {
					t.Fatal(err)
				}
				want := 0.0
				for _, v := range errors {
					want = max(want, math.Abs(v))
				}
				part := p.collect(t, 1)
				run := accuracy.Run{Mesh: p.Mesh(), Operator: p.Operator()}
				got := run.Correction(part)
				if math.Abs(got/want-1) > 1e-3 {
					t.Errorf("%g, want %g", got, want)
				}
				many := p.collect(t, 3)
				if !reflect.DeepEqual(many.Grounds, part.Grounds) || !reflect.DeepEqual(many.Free, part.Free) ||
					run.Correction(many) != got || many.Largest != part.Largest {
					t.Errorf("3 ranks: %v", many)
				}
			})
		}
	}
}

// Soon after the start the update is large beside the walls alone, in a part of the outer blocks. Its sum over a block
// would give errors of many times the largest value.
func TestCorrectionOfAFront(t *testing.T) {
	p := newMade(1, 1000, 34, solver.Walls{Top: solver.Neumann, Bottom: solver.Neumann}, false)
	clear(p.Initial)
	clear(p.b)
	for iy := range 34 {
		p.Initial[iy*1000] = 1
	}
	run := accuracy.Run{Mesh: p.Mesh(), Operator: p.Operator()}
	if got := run.Correction(p.collect(t, 2)); got < 0.5 || got > 1.5 {
		t.Errorf("the error is 1, and its estimate %g", got)
	}
}

// A last norm of a quarter of the one before it leaves a third of the last change, times 1.75, or twice the next
// change. Where the last norm has not fallen, the mean quotient counts. Norms that do not fall, or that are too few,
// say nothing.
func TestErrorFromChanges(t *testing.T) {
	for _, c := range []struct {
		norms []float64
		next  float64
		want  float64
	}{
		{[]float64{16, 4, 1}, 0, 1.75},
		{[]float64{1, 16, 4}, 0.75, 1.75},
		{[]float64{16, 4, 1}, 1, 2},
		{[]float64{16, 1, 1}, 0, 1.75},
		{[]float64{16, 0}, 0, 0},
		{[]float64{1, 1}, 0, math.Inf(1)},
		{[]float64{1, 2}, 0, math.Inf(1)},
		{[]float64{1}, 0, math.Inf(1)},
		{nil, 0, math.Inf(1)},
	} {
		var f accuracy.Fall
		f.Add(c.norms)
		if got := (accuracy.Changes{Last: 3, Next: c.next}).Error(f); got != c.want && !(math.Abs(got-c.want) < 1e-12) {
			t.Errorf("norms %v: %g, want %g", c.norms, got, c.want)
		}
	}
}
