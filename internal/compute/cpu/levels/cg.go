package levels

import (
	"context"
	"unsafe"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// CG implements multigrid.CG for a Device of a weighted operator, whose field it shares.
type CG struct {
	device *Device
	layout multigrid.Layout
	level  *level[float64] // u is the field
	x, p   array[float64]
	kept   bool // Keep was called
	lanes  []*lane
}

// lane is the memory of one thread.
type lane struct {
	engine
	z     [4][]float64 // rows of z by row mod 4
	d     [3][]float64 // d of z, p and x in a row
	acc   [len(multigrid.Products{})][]float64
	terms [len(multigrid.Products{})]*multigrid.DotTerms
}

// NewCG returns the CG of d.
func NewCG(d *Device) *CG {
	v := d.finest
	s := &CG{device: d, layout: d.layout, level: v, x: v.newArray(), p: v.newArray()}
	for range lanesOf(v.own, v.Mesh.NX, d.threads) {
		k := &lane{engine: v.engine}
		rows := newRows[float64](grouped(v.Mesh.NX), len(k.z)+len(k.d)+len(k.acc))
		rows = rows[copy(k.z[:], rows):]
		rows = rows[copy(k.d[:], rows):]
		copy(k.acc[:], rows)
		for i := range k.terms {
			k.terms[i] = multigrid.NewDotTerms(d.layout.Magnitude)
		}
		s.lanes = append(s.lanes, k)
	}
	return s
}

// grouped returns the values of whole groups of columns that a row has, with those of pad, in whole vectors.
func grouped(nx int) int { return (nx + 7) / 8 * 8 }

// Load implements multigrid.CG.
func (s *CG) Load(ctx context.Context, rows solver.RowSource) error {
	if rows == nil { // p is new
		return nil
	}
	return s.device.fill(ctx, s.p, solver.RowsOf(rows))
}

// Keep implements multigrid.CG.
func (s *CG) Keep(context.Context) error {
	if !s.kept { // u needs its walls
		s.device.copy(s.x, s.level.u)
		s.kept = true
	}
	s.x, s.level.u = s.level.u, s.x
	return nil
}

// Products implements multigrid.CG.
func (s *CG) Products(context.Context) (total multigrid.Products, err error) {
	s.each(s.level.own, func(k *lane, rows solver.Stripe) {
		if s.level.aggregates == nil && k.f64 != nil {
			s.multiplyPoints(k, rows)
		} else {
			s.multiply(k, rows)
		}
	})
	for _, k := range s.lanes {
		for i := range total {
			total[i].Merge(k.terms[i].Total())
		}
	}
	return total, nil
}

// each divides rows at multiples of a group's rows among the lanes.
func (s *CG) each(rows solver.Stripe, run func(k *lane, rows solver.Stripe)) {
	divide(rows, len(s.lanes), func(i int, part solver.Stripe) { run(s.lanes[i], part) })
}

// multiplyPoints is multiply with one function for all of a row.
func (s *CG) multiplyPoints(k *lane, rows solver.Stripe) {
	l, a := s.level, &k.args
	acc := [3][]float64{k.acc[0], k.acc[1], k.acc[2]} // each of two sums
	a.n = len(k.acc[0])
	a.dst, a.dst2, a.ahead2 = address(acc[0], 0), address(acc[1], 0), address(acc[2], 0)
	for y := rows.Lo; y < rows.Hi; y++ {
		if y == rows.Lo || y%solver.GroupRows == 0 {
			for _, sums := range acc {
				clear(sums)
			}
		}
		points, from := l.points.at(y), func(v array[float64], y int) unsafe.Pointer { return address(s.row(v, y), 0) }
		centre := points.centre
		if l.Mesh.PeriodicColumns() { // columns that are copies do not count
			copy(k.d[0], centre)
			k.d[0][0], k.d[0][l.Mesh.NX-1] = 0, 0
			centre = k.d[0]
		}
		a.a, a.b, a.c = from(l.u, y), from(l.u, y-1), from(l.u, y+1)
		a.d, a.e, a.f = from(s.x, y), from(s.x, y-1), from(s.x, y+1)
		a.ahead = address(l.b.at(y), 0)
		a.rows = [len(a.rows)]unsafe.Pointer{address(points.diagonal, 0), address(points.east, 0),
			address(points.north, 0), address(points.south, 0), 8: address(centre, 0), 9: from(s.p, y),
			10: from(s.p, y-1), 11: from(s.p, y+1)}
		k.f64.pointProducts(a)
		if y < rows.Hi-1 && (y+1)%solver.GroupRows != 0 {
			continue
		}
		for g := 0; g < len(acc[0]); g += 4 {
			for i, t := range k.terms {
				t.Add(acc[i/2][g+i%2])
			}
		}
	}
}

// multiply adds the products of rows to those of a lane.
func (s *CG) multiply(k *lane, rows solver.Stripe) {
	l := s.level
	next := rows.Lo - 1 // the next row of z to compute
	for y := rows.Lo; y < rows.Hi; y++ {
		for ; next <= y+1; next++ {
			if l.held(next) {
				subtract(&k.engine, k.z[next&3], l.u.at(next), s.x.at(next))
			} else {
				clear(k.z[next&3])
			}
		}
		var z, p, x stencil[float64]
		l.read(&z, k.z[(y-1)&3], k.z[y&3], k.z[(y+1)&3], y)
		l.read(&p, s.row(s.p, y-1), s.p.at(y), s.row(s.p, y+1), y)
		l.read(&x, s.row(s.x, y-1), s.x.at(y), s.row(s.x, y+1), y)
		z.b, p.b = nil, nil
		for i, v := range []*stencil[float64]{&z, &p, &x} {
			if l.aggregates != nil {
				residuals(&k.engine, k.d[i], v)
				continue
			}
			defects(&k.engine, k.d[i], v)
			times(&k.engine, k.d[i], l.points.centre.at(y))
		}
		if y == rows.Lo || y%solver.GroupRows == 0 {
			for _, acc := range k.acc {
				clear(acc)
			}
		}
		zs, ps := k.z[y&3], s.p.at(y)
		for i, f := range [...]struct{ v, d []float64 }{{zs, k.d[0]}, {zs, k.d[1]}, {ps, k.d[1]}, {zs, k.d[2]},
			{ps, k.d[2]}} {
			products(&k.engine, k.acc[i], f.v[:len(f.d)], f.d)
		}
		if y == rows.Hi-1 || (y+1)%solver.GroupRows == 0 {
			s.collect(k)
		}
	}
}

// row returns row y of an array; beyond a Neumann wall, zeros.
func (s *CG) row(a array[float64], y int) []float64 {
	if !a.has(y) {
		return s.level.points.zero
	}
	return a.at(y)
}

// collect adds the groups of a lane to its products.
func (s *CG) collect(k *lane) {
	for i, acc := range k.acc {
		for _, v := range groups(&k.engine, acc) {
			k.terms[i].Add(v)
		}
	}
}

// Step implements multigrid.CG.
func (s *CG) Step(_ context.Context, a, b float64) error {
	l := s.level
	s.each(l.once(), func(k *lane, rows solver.Stripe) {
		for y := rows.Lo; y < rows.Hi; y++ {
			step(&k.engine, l.u.at(y), s.p.at(y), s.x.at(y), a, b)
		}
	})
	return nil
}

// CopyRows implements multigrid.CG.
func (s *CG) CopyRows(_ context.Context, rows solver.Stripe, dst []byte) error {
	if err := s.p.check(rows, len(dst)); err != nil {
		return err
	}
	s.p.copyTo(dst, rows)
	return nil
}

// Largest implements multigrid.CG.
func (s *CG) Largest(_ context.Context, rows solver.Stripe) (float64, error) {
	return s.device.largest(s.p, multigrid.OwnColumns(s.level.Mesh), rows), nil
}

// Bytes implements multigrid.CG.
func (s *CG) Bytes() int64 { return CGBytes(s.layout) }

// CGBytes returns the bytes of the arrays of a CG.
func CGBytes(l multigrid.Layout) int64 { return 2 * arrayBytes(l, 0) }
