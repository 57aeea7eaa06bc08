package outputs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"golang.org/x/sync/errgroup"

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

// writeArrays writes this rank's rows of the arrays. fault says why rows are not in the file of the field.
func (o *Outputs) writeArrays(ctx context.Context, s *source) (fault error) {
	for i, a := range o.arrays {
		if err := s.write(ctx, a, i); o.Config.Output.OneFile() {
			fault = cmp.Or(fault, err)
		} else if err != nil {
			o.lack(o.titleOf(a), err)
		}
		fault = cmp.Or(fault, a.rows.Close())
		a.rows = nil // Abort has nothing to abandon any more
	}
	return fault
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

// beside returns the rows around the stripe of a rank that its outputs take: those next to it and, for derivatives,
// those beyond periodic ends.
func (o *Outputs) beside(rank int) []int {
	stripe, m := o.Stripes[rank], o.Layout.Mesh
	rows := []int{stripe.Lo - 1, stripe.Hi}
	if m.PeriodicRows() && len(o.arrays) > 0 && o.Config.Output.Gradient {
		if stripe.Lo == 1 {
			rows = append(rows, -1)
		}
		if stripe.Hi == m.NY-1 {
			rows = append(rows, m.NY)
		}
	}
	return rows
}

// meet gives the ranks the rows beside theirs: each of them, or the row of which it is a copy, comes from its owner.
// All ranks call it.
func (o *Outputs) meet(ctx context.Context) (*source, error) {
	s := &source{Outputs: o, view: o.view(), edges: map[int][]byte{}}
	m, self := o.Layout.Mesh, o.id.Rank
	mine := o.beside(self)
	rows := make([][]byte, len(mine)) // nil for those that no rank has
	way, ctx := errgroup.WithContext(ctx)
	for rank := range o.Stripes {
		for i, iy := range o.beside(rank) {
			iy, _ = m.Canonical(iy)
			from := sort.Search(len(o.Stripes), func(k int) bool { return o.Stripes[k].Hi > iy })
			tag := fmt.Sprintf("row beside, %d", i)
			switch {
			case from == len(o.Stripes) || iy < o.Stripes[from].Lo: // the row of a wall, or none
			case from == self:
				row := make([]byte, m.RowBytes())
				err := s.view.Rows.CopyRows(ctx, solver.Stripe{Lo: iy, Hi: iy + 1}, row)
				switch {
				case err != nil:
					way.Go(func() error { return err }) // ends what goes on
				case rank == self:
					rows[i] = row
				default:
					way.Go(func() error { return o.sendRow(ctx, rank, tag, row) })
				}
			case rank == self:
				way.Go(func() (err error) { rows[i], err = o.recvRow(ctx, from, tag); return err })
			}
		}
	}
	if err := way.Wait(); err != nil {
		return nil, err
	}
	s.below = rows[1]
	swept := m.Interior()
	for i, iy := range mine {
		switch edge := iy == 0 || iy == m.NY-1; {
		case edge && (iy < swept.Lo || iy >= swept.Hi):
			row, err := s.view.Edge(iy, rows[i])
			if err != nil {
				return nil, err
			}
			s.edges[iy] = row
		case rows[i] != nil:
			s.edges[iy] = rows[i]
		}
	}
	return s, nil
}
