package cuda

import (
	"encoding/binary"
	"fmt"
	"testing"

	"jacobi/solver"
)

// every3 fixes the points whose row and column add up to a multiple of 3.
type every3 struct{}

func (every3) FixedRow(y int, dst []bool) error {
	for x := range dst {
		dst[x] = (x+y)%3 == 0
	}
	return nil
}

// The words of fixed points hold the fixed walls, the copies of columns, the padding and the fixed points of all rows
// held, halos included, and nothing of other rows.
func TestFixedPoints(t *testing.T) {
	for _, walls := range []solver.Walls{
		{}, solver.WrapRows(true), {Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann},
		{Left: solver.Periodic, Right: solver.Periodic, Bottom: solver.Neumann},
	} {
		for _, fixed := range []solver.FixedRows{nil, every3{}} {
			m := solver.Mesh{NX: 21, NY: 30, DType: solver.Float32, Walls: walls}
			l := solver.Layout{Mesh: m, Stripe: m.Interior(), Depth: 3,
				Neighbour: [2]bool{m.PeriodicRows(), m.PeriodicRows()},
				Operator:  solver.Operator{Scale: 0.5, Blend: 0.5, Fixed: fixed}}
			o, held := newOperator(l), l.Held()
			if o.words != 32/8 || o.sourcePitch != 0 {
				t.Errorf("%d words a row, %d values from a row of the source to the next; want 4, 0", o.words,
					o.sourcePitch)
			}
			p, row := newPoints(l, int(o.words)), make([]byte, 8*o.words)
			lo, hi := m.InteriorColumns()
			for g := range int(o.groups) {
				if err := p.group(o.lo+g, row); err != nil {
					t.Fatal(err)
				}
				for i := range 8 * 32 {
					y, x := (o.lo+g)*8+i/32, i%32
					canonical, _ := m.Canonical(y)
					want := x < lo || x >= hi || canonical < m.Interior().Lo || canonical >= m.Interior().Hi ||
						fixed != nil && (x+canonical)%3 == 0
					want = want && y >= held.Lo && y < held.Hi
					got := binary.LittleEndian.Uint64(row[x/8*8:])>>(i/32*8+x%8)&1 == 1
					if got != want {
						t.Errorf("walls %+v, fixed points %v: row %d, column %d: fixed is %v", walls, fixed != nil, y,
							x, got)
					}
				}
			}
			if last := (o.lo + int(o.groups)) * 8; last < held.Hi || last-8 >= held.Hi || o.lo*8 > held.Lo {
				t.Errorf("groups from row %d to row %d; rows %v are held", o.lo*8, last, held)
			}
		}
	}
}

// MemoryBytes counts a word and the number of a group for each 8 columns and 8 rows, and a source row for each row, or
// one of zeros if the operator has none, or the five values of weighted points. The plain average on fixed walls takes
// nothing.
func TestOperatorBytes(t *testing.T) {
	plain := solver.Operator{}
	general := solver.Operator{Scale: 0.5, Blend: 0.5}
	source := solver.Operator{Scale: 0.5, Blend: 0.5, Values: unread{}}
	weighted := solver.Operator{Weighted: true, Values: unread{}}
	const groups, rows, words, pitch = 5, 40, 64 / 8, 64 * 4
	for _, test := range []struct {
		operator solver.Operator
		walls    solver.Walls
		want     int64
	}{
		{plain, solver.Walls{}, 0},
		{plain, solver.WrapRows(true), 0},
		{plain, solver.Walls{Top: solver.Neumann}, 12 * groups * words},
		{solver.Operator{Fixed: every3{}}, solver.Walls{}, 12 * groups * words},
		{general, solver.Walls{}, 12*groups*words + pitch},
		{source, solver.Walls{}, 12*groups*words + rows*pitch},
		{weighted, solver.Walls{}, 12*groups*words + 5*rows*pitch},
	} {
		m := solver.Mesh{NX: 40, NY: rows, DType: solver.Float32, Walls: test.walls}
		l := solver.Layout{Mesh: m, Stripe: m.Interior(), Depth: 1, Operator: test.operator}
		if m.PeriodicRows() {
			l.Neighbour = [2]bool{true, true}
		}
		if got := operatorBytes(l); got != test.want {
			t.Errorf("%+v, walls %+v: %d bytes, want %d", test.operator, test.walls, got, test.want)
		}
	}
}

// unread is a source that nobody reads.
type unread struct{}

func (unread) ValueRow(y int, _ solver.Value, _ []byte) error { return fmt.Errorf("row %d is read", y) }

// Kernels with terms do what others cannot, and the values of points limit how many pipelines a block has room for.
func TestTermsKernels(t *testing.T) {
	fixed, weighted := solver.Walls{}, solver.Operator{Weighted: true, Values: unread{}}
	for _, test := range []struct {
		operator      solver.Operator
		walls         solver.Walls
		dtype         solver.DType
		sweeps        int
		kernel        string
		blocks, warps int
	}{
		{solver.Operator{Fixed: every3{}}, fixed, solver.Float32, 16, "sweep_fixed_f32", 132, 3 * 8},
		{solver.Operator{Fixed: every3{}}, fixed, solver.Float32, 1, "once_fixed_f32", 528, 4},
		{solver.Operator{}, solver.Walls{Left: solver.Neumann}, solver.Float64, 12, "sweep_fixed_f64", 132, 4 * 3},
		{solver.Operator{Scale: 0.5, Blend: 0.5}, fixed, solver.Float32, 16, "sweep_source_f32", 132, 2 * 8},
		{solver.Operator{Scale: 0.5, Blend: 0.5}, fixed, solver.Float32, 8, "sweep_source_f32", 132, 4 * 4},
		{solver.Operator{Scale: 0.5, Blend: 0.5}, fixed, solver.Float64, 12, "sweep_source_f64", 132, 4 * 3},
		{solver.Operator{Scale: 0.5, Blend: 0.5}, fixed, solver.Float64, 16, "sweep_source_f64", 132, 2 * 4},
		{weighted, fixed, solver.Float32, 16, "sweep_weighted_f32", 132, 2 * 4},
		{weighted, fixed, solver.Float32, 8, "sweep_weighted_f32", 132, 4 * 2},
		{weighted, fixed, solver.Float32, 1, "once_weighted_f32", 528, 4},
		{weighted, fixed, solver.Float64, 16, "sweep_weighted_f64", 132, 8},
	} {
		m := solver.Mesh{NX: 16384, NY: 16384, DType: test.dtype, Walls: test.walls}
		p := pass{nx: 16384, outHi: 16384, countHi: 16384, sweeps: int32(test.sweeps)}
		for _, s := range shapesFor(solver.Layout{Mesh: m, Operator: test.operator}) {
			if test.sweeps > s.maxSweeps {
				continue
			}
			d, ok := s.divide(capacity{sms: 132, shared: 227 << 10, held: 4}, &p)
			if !ok || !s.terms || s.name != test.kernel || d.blocks != test.blocks || d.threads != 32*test.warps {
				t.Errorf("%d sweeps: kernel %s, %d blocks of %d threads (%v); want %s, %d of %d", test.sweeps, s.name,
					d.blocks, d.threads, ok, test.kernel, test.blocks, 32*test.warps)
			}
			break
		}
	}
}

// Load copies periodic columns itself: a source of rows need not.
func TestLoadRepeatsPeriodicColumns(t *testing.T) {
	read := func(_ int, dst []byte) error { copy(dst, "0011223344"); return nil }
	for walls, want := range map[solver.Walls]string{
		{}: "0011223344",
		{Left: solver.Periodic, Right: solver.Periodic}: "3311223311",
	} {
		row := make([]byte, 10)
		m := solver.Mesh{NX: 5, NY: 3, DType: 2, Walls: walls}
		if err := repeating(m, read)(1, row); err != nil || string(row) != want {
			t.Errorf("%+v: %q, %v; want %q", walls, row, err, want)
		}
	}
}
