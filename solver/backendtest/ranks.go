package backendtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"jacobi/solver"
	"jacobi/solver/exchangetest"
)

// field is a random initial field with some values of much smaller magnitude, denormal numbers among them.
type field struct {
	mesh    solver.Mesh
	rows    [][]byte
	largest float64 // absolute value
}

func newField(mesh solver.Mesh, seed uint64) *field {
	r := rand.New(rand.NewPCG(seed, 1))
	f := &field{mesh: mesh}
	for iy := range mesh.NY {
		if again(iy) {
			f.rows = append(f.rows, f.rows[iy-1])
			continue
		}
		row := make([]byte, 0, mesh.RowBytes())
		for range mesh.NX {
			v := value(r)
			f.largest = max(f.largest, math.Abs(v))
			row = appendValue(row, mesh.DType, v)
		}
		f.rows = append(f.rows, row)
	}
	return f
}

// again reports whether row iy of a field, and of the values of points, is the same as row iy-1.
func again(iy int) bool { return iy%8 > 4 }

// RowRepeats implements solver.RowRepeater.
func (f *field) RowRepeats(iy int) bool { return again(iy) }

// value returns a random float32 value in [-1, 1].
func value(r *rand.Rand) float64 {
	v := float64(float32(2*r.Float64() - 1))
	switch r.IntN(16) {
	case 0:
		v = 0
	case 1:
		v *= 0x1p-140 // a denormal of float32; its squares vanish
	case 2:
		v *= 0x1p-70
	case 3:
		v *= 0x1p-20
	}
	return v
}

// appendValue appends v in a type.
func appendValue(row []byte, t solver.DType, v float64) []byte {
	if t == solver.Float32 {
		return binary.LittleEndian.AppendUint32(row, math.Float32bits(float32(v)))
	}
	return binary.LittleEndian.AppendUint64(row, math.Float64bits(v))
}

func (f *field) Row(iy int, dst []byte) error {
	if iy < 0 || iy >= len(f.rows) || len(dst) != f.mesh.RowBytes() {
		return fmt.Errorf("row %d of %d bytes asked for: the mesh has %d rows of %d bytes", iy, len(dst), len(f.rows),
			f.mesh.RowBytes())
	}
	copy(dst, f.rows[iy])
	return nil
}

// ranks drives one backend for each stripe as solver.Run does, and moves the edges itself.
type ranks struct {
	field    *field
	mesh     solver.Mesh
	depth    int
	norms    solver.Cadence
	stripes  []solver.Stripe
	backends []solver.Backend
	index    uint64
}

func open(c Case, f *field, op solver.Operator, factory Factory) (*ranks, error) {
	stripes, err := solver.Partition(c.Mesh.Interior(), c.Ranks, c.Depth)
	if err != nil {
		return nil, err
	}
	r := &ranks{field: f, mesh: c.Mesh, depth: c.Depth, norms: c.Norms, stripes: stripes}
	for i, s := range stripes {
		b, err := factory(solver.Layout{
			Mesh: c.Mesh, Stripe: s, Depth: c.Depth, Magnitude: magnitude(op, f.largest), Operator: op,
			Norms: c.Norms,
			Neighbour: [2]bool{exchangetest.Neighbour(c.Mesh, c.Ranks, i, solver.Top) >= 0,
				exchangetest.Neighbour(c.Mesh, c.Ranks, i, solver.Bottom) >= 0},
		})
		if err == nil {
			r.backends = append(r.backends, b)
			err = b.Load(context.Background(), f)
		}
		if err != nil {
			return r, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return r, nil
}

// pass does pass b on all ranks, followed by an exchange of edges if exchange is set. It returns the sums over all
// ranks, of the sweeps that have a norm.
func (r *ranks) pass(b solver.Pass, exchange bool) ([]solver.Sum, error) {
	ctx := context.Background()
	type message struct {
		to   int
		side solver.Side
		rows []byte
	}
	var messages []message
	b.Index = r.index
	r.index++
	_, norms := r.norms.Of(b)
	total := make([]solver.Sum, norms)
	for i, k := range r.backends {
		if exchange {
			if err := k.Edges(ctx, b); err != nil {
				return nil, fmt.Errorf("rank %d: edges: %w", i, err)
			}
			for _, side := range []solver.Side{solver.Top, solver.Bottom} {
				to := exchangetest.Neighbour(r.mesh, len(r.stripes), i, side)
				if to < 0 {
					continue
				}
				rows := make([]byte, r.depth*r.mesh.RowBytes())
				if err := k.CopyEdge(ctx, side, rows); err != nil {
					return nil, fmt.Errorf("rank %d: edge at the %v: %w", i, side, err)
				}
				messages = append(messages, message{to, side.Opposite(), rows})
			}
		}
		if err := k.Interior(ctx, b); err != nil {
			return nil, fmt.Errorf("rank %d: interior: %w", i, err)
		}
		if norms == 0 {
			continue
		}
		sums, err := k.Sums(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("rank %d: sums: %w", i, err)
		}
		if len(sums) != norms {
			return nil, fmt.Errorf("rank %d: %d sums of a pass of %d sweeps with %d norms", i, len(sums), b.Sweeps,
				norms)
		}
		for s := range sums {
			total[s].Merge(sums[s])
		}
	}
	for _, m := range messages {
		if err := r.backends[m.to].SetHalo(ctx, m.side, m.rows); err != nil {
			return nil, fmt.Errorf("rank %d: halo at the %v: %w", m.to, m.side, err)
		}
	}
	return total, nil
}

// undo takes the last pass back on all ranks.
func (r *ranks) undo() error {
	for i, k := range r.backends {
		if err := k.Undo(); err != nil {
			return fmt.Errorf("rank %d: undo: %w", i, err)
		}
	}
	return nil
}

// equal compares the interior with the rows that want returns. The error names the first row and column that differ.
func (r *ranks) equal(want func(solver.Stripe) []byte) error {
	n := r.mesh.RowBytes()
	for i, k := range r.backends {
		s := r.stripes[i]
		got := make([]byte, s.Rows()*n)
		if err := k.CopyRows(context.Background(), s, got); err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
		if expected := want(s); !bytes.Equal(got, expected) {
			for y := range s.Rows() {
				if g, w := got[y*n:(y+1)*n], expected[y*n:(y+1)*n]; !bytes.Equal(g, w) {
					return fmt.Errorf("rank %d: row %d differs, first at column %d", i, s.Lo+y,
						differs(g, w)/r.mesh.DType.Size())
				}
			}
		}
	}
	return nil
}

func differs(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func (r *ranks) close() error {
	var first error
	for _, k := range r.backends {
		if err := k.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
