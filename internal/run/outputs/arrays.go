package outputs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// array is an array that the run writes besides the field: in the file of the field, or in one of its own.
type array struct {
	configs.Array
	rows *output.FieldWriter
	file *output.Field // of its own; on rank 0 only
}

// arraysOf returns the arrays that a run writes. A .vti file of a problem that may have points outside the material
// marks them, so that ParaView leaves them out.
func arraysOf(o configs.Output, porous bool) []configs.Array {
	list := o.Arrays()
	if !o.OneFile() {
		return list
	}
	list = slices.DeleteFunc(list, func(a configs.Array) bool { return a.Name == "outside" })
	if porous {
		list = append(list, configs.Array{Name: output.Ghosts, Mask: true})
	}
	return list
}

// openFields opens, on all ranks, the file of the field, which rank 0 has created, and those of the arrays, which it
// creates.
func (o *Outputs) openFields(ctx context.Context) (err error) {
	c := o.Config.Output
	hx, hy := o.Problem.Spacings()
	for _, a := range arraysOf(c, o.Problem.Porous()) {
		o.arrays = append(o.arrays, &array{Array: a})
	}
	var tickets []output.Ticket
	if o.id.Rank == 0 {
		tickets = o.files.field.Tickets
		for _, a := range o.arrays {
			if c.OneFile() {
				break
			}
			name := c.ArrayFile(a.Name)
			a.file, err = output.CreateField(o.place, name, o.Layout.Mesh,
				output.ArrayFormat(name, o.Layout.Mesh, hx, hy, a.Mask, c.Float32))
			if err != nil {
				return err
			}
			tickets = append(tickets, a.file.Tickets[0])
		}
	}
	if tickets, err = roster.BroadcastOn(ctx, o.Comm, "fields", tickets); err != nil {
		return err
	}
	if o.rows, o.path, err = o.openRows(tickets[0]); err != nil {
		return err
	}
	for i, a := range o.arrays {
		if a.rows, _, err = o.openRows(tickets[1+i]); err != nil {
			return err
		}
	}
	return nil
}

// writeArrays writes this rank's rows of the arrays. fault says why rows are not in the file of the field. All ranks
// call it.
func (o *Outputs) writeArrays(ctx context.Context, s *source) (fault, err error) {
	if len(o.arrays) > 0 && o.Config.Output.Gradient {
		if err := s.beyond(ctx); err != nil {
			return nil, err
		}
	}
	for i, a := range o.arrays {
		if err := s.write(ctx, a, i); o.Config.Output.OneFile() {
			fault = cmp.Or(fault, err)
		} else if err != nil {
			o.lack(o.titleOf(a), err)
		}
		fault = cmp.Or(fault, a.rows.Close())
		a.rows = nil // Abort has nothing to abandon any more
	}
	return fault, nil
}

// titleOf returns the name of the file of an array or, in the file of the field, of the array there.
func (o *Outputs) titleOf(a *array) string {
	if c := o.Config.Output; !c.OneFile() {
		return c.ArrayFile(a.Name)
	}
	return a.Name + " in " + o.Config.Output.Field
}

// blank returns rows that are not known: NaN, or no points of a mask.
func (a *array) blank(m solver.Mesh, rows int) []byte {
	if a.Mask {
		return make([]byte, rows*m.NX)
	}
	data := make([]byte, rows*m.RowBytes())
	m.DType.Encode(data, slices.Repeat([]float64{math.NaN()}, rows*m.NX))
	return data
}

// source yields the rows of the field with those beside the stripe, and the rows of the arrays.
type source struct {
	*Outputs
	view  output.View
	below []byte         // the row after the stripe as its rank has it; nil at an end that is not periodic
	edges map[int][]byte // rows of the field beside those of the stripe; -1 and NY are beyond periodic ends
}

// write writes the rows of array i that are this rank's: those of the stripe, and rows 0 and NY-1 beside it.
func (s *source) write(ctx context.Context, a *array, i int) error {
	m := s.Layout.Mesh
	lo, hi := s.Layout.Stripe.Lo, s.Layout.Stripe.Hi
	if s.id.Rank == 0 {
		lo = 0
	}
	if s.id.Rank == s.id.Size-1 {
		hi = m.NY
	}
	for n := max(1, arrayChunk/m.RowBytes()); lo < hi; lo += n {
		rows, err := s.rows(ctx, a, lo, min(lo+n, hi))
		if err != nil { // the field is in the file, which must stay
			s.lack(s.titleOf(a), err)
			rows = a.blank(m, min(lo+n, hi)-lo)
		}
		if err := a.rows.WriteRows(lo, rows); err != nil {
			return fmt.Errorf("array %s: %w", a.Name, err)
		}
	}
	return nil
}

// arrayChunk bounds the bytes of rows that are worked out at once.
const arrayChunk = 4 << 20

// rows returns rows [lo, hi) of an array, in the type of the mesh or as bytes of a mask.
func (s *source) rows(ctx context.Context, a *array, lo, hi int) ([]byte, error) {
	m, p := s.Layout.Mesh, s.Problem
	if a.Mask {
		data, mark := make([]byte, (hi-lo)*m.NX), byte(1)
		row := p.OutsideRow
		switch a.Name {
		case "fixed":
			row = p.GivenRow
		case output.Ghosts:
			mark = output.HiddenPoint
		}
		return data, parallel.Each(hi-lo, func(i int) error {
			set := make([]bool, m.NX)
			err := row(lo+i, set)
			for ix, on := range set {
				if on {
					data[i*m.NX+ix] = mark
				}
			}
			return err
		})
	}
	values := make([][]float64, hi-lo)
	for i := range values {
		values[i] = make([]float64, m.NX)
	}
	var err error
	if a.Name == "coefficient" {
		err = parallel.Each(len(values), func(i int) error { return p.CoefficientRow(lo+i, values[i]) })
	} else {
		var field [][]float64
		if field, err = s.field(ctx, lo-1, hi+1); err == nil {
			err = results.NewGradient(p).Along(a.Name == "flux_x", lo, field, values)
		}
	}
	data := make([]byte, len(values)*m.RowBytes())
	return data, cmp.Or(err, parallel.Each(len(values), func(i int) error {
		m.DType.Encode(data[i*m.RowBytes():], values[i])
		return nil
	}))
}

// field returns rows [lo, hi) of the field; nil for those outside the mesh.
func (s *source) field(ctx context.Context, lo, hi int) ([][]float64, error) {
	m, stripe := s.Layout.Mesh, s.Layout.Stripe
	own := solver.Stripe{Lo: max(lo, stripe.Lo), Hi: min(hi, stripe.Hi)}
	data := make([]byte, max(0, own.Rows())*m.RowBytes())
	if own.Rows() > 0 {
		if err := s.view.Rows.CopyRows(ctx, own, data); err != nil {
			return nil, err
		}
	}
	rows := make([][]float64, hi-lo)
	return rows, parallel.Each(len(rows), func(i int) error {
		row := s.edges[lo+i]
		if iy := lo + i; iy >= own.Lo && iy < own.Hi {
			row = data[(iy-own.Lo)*m.RowBytes():][:m.RowBytes()]
		}
		if row != nil {
			rows[i] = make([]float64, m.NX)
			m.DType.Decode(rows[i], row)
		}
		return nil
	})
}

// meet gives the ranks the rows beside theirs. All ranks call it.
func (o *Outputs) meet(ctx context.Context) (*source, error) {
	s := &source{Outputs: o, view: o.view(), edges: map[int][]byte{}}
	m, stripe, size := o.Layout.Mesh, o.Layout.Stripe, o.id.Size
	top, err := s.row(ctx, stripe.Lo)
	if err != nil {
		return nil, err
	}
	bottom, err := s.row(ctx, stripe.Hi-1)
	if err != nil {
		return nil, err
	}
	above, below, over := o.id.Rank-1, o.id.Rank+1, bottom // of a rank that is its own neighbour, if any
	switch ring := m.PeriodicRows(); {
	case ring && size == 1:
		s.below = top
	case ring:
		above, below = (above+size)%size, below%size
	case below == size:
		below = -1
	}
	if size > 1 {
		if s.below, err = o.swap(ctx, firstRowTag, top, above, below); err != nil {
			return nil, err
		}
		if over, err = o.swap(ctx, lastRowTag, bottom, below, above); err != nil {
			return nil, err
		}
	}
	swept := m.Interior()
	for iy, row := range map[int][]byte{stripe.Lo - 1: over, stripe.Hi: s.below} {
		switch {
		case iy < 0 || iy == m.NY: // the stripe has the last row itself
		case iy >= swept.Lo && iy < swept.Hi:
			s.edges[iy] = row
		case err == nil:
			s.edges[iy], err = s.view.Edge(iy, row)
		}
	}
	return s, err
}

// beyond adds the rows beyond periodic ends: row NY-1 is row 1, so row 2 comes next; row 0 is row NY-2, and row NY-3
// stands before it. All ranks call it.
func (s *source) beyond(ctx context.Context) (err error) {
	m, end := s.Layout.Mesh, s.id.Size-1
	var head, tail []byte
	if second, ok := m.Canonical(2); ok && m.PeriodicRows() && s.id.Rank == 0 {
		head, err = s.row(ctx, second)
	}
	if third, ok := m.Canonical(m.NY - 3); ok && m.PeriodicRows() && s.id.Rank == end && err == nil {
		tail, err = s.row(ctx, third)
	}
	switch {
	case err != nil || !m.PeriodicRows():
	case end == 0:
		s.edges[m.NY], s.edges[-1] = head, tail
	case s.id.Rank == 0:
		s.edges[-1], err = s.swap(ctx, beyondTag, head, end, end)
	case s.id.Rank == end:
		s.edges[m.NY], err = s.swap(ctx, beyondTag, tail, 0, 0)
	}
	return err
}

// row returns a row of the stripe or beside it.
func (s *source) row(ctx context.Context, iy int) ([]byte, error) {
	if iy < s.Layout.Stripe.Lo || iy >= s.Layout.Stripe.Hi {
		return s.edges[iy], nil
	}
	b := make([]byte, s.Layout.Mesh.RowBytes())
	return b, s.view.Rows.CopyRows(ctx, solver.Stripe{Lo: iy, Hi: iy + 1}, b)
}
