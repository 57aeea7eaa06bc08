// Package levels computes multigrid cycles on the processor: it implements multigrid.Device. The sweeps of a level go
// through its rows as in a pipe, so Down and Up read and write the memory of a level once.
package levels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/dustin/go-humanize/english"

	"jacobi/internal/compute/cpu/kernel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Device implements multigrid.Device.
type Device struct {
	layout    multigrid.Layout
	finest    *level[float64]
	coarse    []*level[float32] // level l is coarse[l-1]
	threads   int
	kernel    string
	sum       solver.Sum
	factors   *multigrid.Factors // of the coarsest level
	equations []*equations       // by level, while those of a weighted operator are set up
}

// New allocates a device with the given number of threads and one of the kernels of package cpu, "" for the best.
func New(l multigrid.Layout, threads int, name string) (*Device, error) {
	if threads < 1 || l.Agglomerated < 1 || l.Agglomerated >= len(l.Plan.Levels) || len(l.Stripes) != l.Agglomerated {
		return nil, fmt.Errorf("cpu levels: %d threads, %d levels, whole from %d on, %d stripes", threads,
			len(l.Plan.Levels), l.Agglomerated, len(l.Stripes))
	}
	k, e, err := findEngine(name)
	if err != nil {
		return nil, err
	}
	d := &Device{layout: l, threads: threads, kernel: k.Name}
	d.finest = newLevel[float64](l.Plan.Levels[0], ownFinest(l), l.Neighbour, l.Values != nil, e)
	d.finest.scale = math.Ldexp(1, int(l.Magnitude))
	if l.Plan.Weighted {
		d.finest.points = newCouplings(d.finest, false)
	}
	for i, level := range l.Plan.Levels[1:] {
		var own *solver.Stripe
		if i+1 < l.Agglomerated {
			own = &l.Stripes[i+1]
		}
		v := newLevel[float32](level, own, l.Neighbour, true, e)
		if l.Plan.Weighted && i+2 < len(l.Plan.Levels) {
			v.points = newCouplings(v, true)
		}
		d.coarse = append(d.coarse, v)
	}
	if !l.Plan.Weighted {
		if d.factors, err = l.NewFactors(l.Plan.CoarsestPoint); err != nil {
			return nil, err
		}
	}
	d.finest.link(d.coarse[0].Mesh, d.restricts(1), threads)
	for _, p := range d.finest.pipes {
		p.count(&k, l.Magnitude)
	}
	for i, v := range d.coarse[:len(d.coarse)-1] {
		v.link(d.coarse[i+1].Mesh, d.restricts(i+2), threads)
	}
	return d, nil
}

// findEngine returns a kernel of package cpu, "" for the best, and the engine with its instructions.
func findEngine(name string) (kernel.Kernel, engine, error) {
	k, err := kernel.Find(name, solver.Float64)
	if err != nil {
		return k, engine{}, err
	}
	e, err := newEngine(k.Name)
	return k, e, err
}

// ownFinest returns the rows of level 0 that the rank owns, or nil for a rank that is alone: it holds the whole level
// and needs no rows of others.
func ownFinest(l multigrid.Layout) *solver.Stripe {
	if l.Stripes[0] == l.Plan.Levels[0].Mesh.Interior() && !l.Neighbour[solver.Top] && !l.Neighbour[solver.Bottom] {
		return nil
	}
	return &l.Stripes[0]
}

// restricts returns the rows of a level whose right-hand side this rank computes.
func (d *Device) restricts(level int) solver.Stripe {
	if level != d.layout.Agglomerated {
		return d.coarse[level-1].own
	}
	return d.layout.AgglomeratedRows()
}

// Load implements multigrid.Device.
func (d *Device) Load(ctx context.Context, rows solver.RowSource) error {
	if err := d.loadPoints(ctx); err != nil {
		return err
	}
	l := d.finest
	if err := d.fill(ctx, l.u, solver.RowsOf(rows)); err != nil {
		return err
	}
	d.copy(l.v, l.u)
	if d.layout.Values == nil || d.layout.Plan.Weighted {
		return nil
	}
	if err := d.fill(ctx, l.b, solver.ValuesOf(d.layout.Values, solver.Source)); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	return nil
}

// copy copies an array of level 0, on all threads.
func (d *Device) copy(to, from array[float64]) {
	d.parallel(d.finest.once(), func(rows solver.Stripe) {
		for y := rows.Lo; y < rows.Hi; y++ {
			copy(to.at(y), from.at(y))
		}
	})
}

// fill reads the rows of an array of level 0, on all threads.
func (d *Device) fill(ctx context.Context, a array[float64], from solver.Reader) error {
	l := d.finest
	once := l.once()
	errs := make([]error, once.Rows())
	d.parallel(once, func(part solver.Stripe) {
		for y := part.Lo; y < part.Hi; y++ {
			if y > part.Lo && from.Repeats(l.Mesh, y) {
				copy(a.at(y), a.at(y-1))
				continue
			}
			err := context.Cause(ctx)
			row, ok := l.Mesh.Canonical(y)
			switch {
			case err != nil:
			case !ok:
				err = fmt.Errorf("row %d does not exist", y)
			default:
				err = from.Row(row, bytesOf(a.at(y)))
			}
			if err != nil {
				errs[y-once.Lo] = fmt.Errorf("row %d: %w", row, err)
				return
			}
			repeat(a.at(y), l.Mesh)
		}
	})
	return cmp.Or(errs...)
}

// Down implements multigrid.Device.
func (d *Device) Down(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if level > 0 {
		d.downFrom(level, array[float32]{})
		return nil
	}
	for _, p := range d.finest.pipes {
		p.sum.Reset()
	}
	d.finest.down(d.finest.u, d.next().b)
	d.sum = solver.Sum{}
	for _, p := range d.finest.pipes {
		d.sum.Merge(p.sum.Total())
	}
	return nil
}

// down does the sweeps of Down, which begin with the field from, and the restriction to the next level's b. A field of
// zeros has no rows.
func (l *level[F]) down(from array[F], b array[float32]) {
	var begin func(int) []F
	if from.rows != nil {
		begin = from.at
	}
	l.each(l.left(), func(p *pipe[F], write solver.Stripe) {
		own := solver.Stripe{Lo: max(write.Lo, l.own.Lo), Hi: min(write.Hi, l.own.Hi)}
		p.run(&pass[F]{weights: l.weights, begin: begin, from: from, dst: l.v, write: write, counted: own,
			coarse: l.rows.part(own, l.own), to: b})
	})
}

// Up implements multigrid.Device.
func (d *Device) Up(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if level > 0 {
		d.coarse[level-1].up(d.coarse[level].u)
	} else {
		d.finest.up(d.next().u)
	}
	return nil
}

// next returns level 1, without arrays if it has aggregates.
func (d *Device) next() *level[float32] {
	if d.aggregates() != nil {
		return &level[float32]{}
	}
	return d.coarse[0]
}

// aggregates returns those of the device; nil if it has none.
func (d *Device) aggregates() *aggregates { return d.finest.aggregates }

// up does the sweeps of Up, with the correction u.
func (l *level[F]) up(u array[float32]) {
	weights := l.weights
	for i := range weights {
		weights[i] = l.weights[len(weights)-1-i]
	}
	l.each(l.own, func(p *pipe[F], write solver.Stripe) {
		p.run(&pass[F]{weights: weights, begin: func(y int) []F { return p.corrected(u, y) }, from: l.v, dst: l.u,
			write: write})
	})
}

// each divides rows among the level's pipes and runs them at once.
func (l *level[F]) each(rows solver.Stripe, run func(p *pipe[F], rows solver.Stripe)) {
	divide(rows, len(l.pipes), func(i int, part solver.Stripe) { run(l.pipes[i], part) })
}

// Agglomerate implements multigrid.Device.
func (d *Device) Agglomerate(ctx context.Context) error {
	if a := d.aggregates(); a != nil {
		return a.Solve(ctx, a.x, a.b)
	}
	return d.cycles(ctx, d.layout.Agglomerated)
}

// cycles does the cycle of a level that is held as a whole, and does it twice where the plan has it.
func (d *Device) cycles(ctx context.Context, level int) error {
	l := d.coarse[level-1]
	if level == len(d.coarse) {
		d.solveCoarsest()
		return nil
	}
	begin := array[float32]{} // zeros
	for range d.layout.Plan.CycleIndex(level) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.downFrom(level, begin)
		if err := d.cycles(ctx, level+1); err != nil {
			return err
		}
		l.up(d.coarse[level].u)
		begin = l.u
	}
	return nil
}

// downFrom does Down on a coarser level, beginning with a field.
func (d *Device) downFrom(level int, from array[float32]) {
	d.coarse[level-1].down(from, d.coarse[level].b)
}

// Sum implements multigrid.Device.
func (d *Device) Sum(context.Context) (solver.Sum, error) { return d.sum, nil }

// rows is an array as other ranks and files know it: dense, row by row. Beside it are those of which each value is a
// row, the unknowns of aggregates.
type rows interface {
	// check returns an error unless the array holds rows s and their dense length is bytes.
	check(s solver.Stripe, bytes int) error
	copyTo(dst []byte, s solver.Stripe)
	// largest returns the largest absolute value in columns of rows s; NaN if one is NaN.
	largest(columns, s solver.Stripe) float64
	// set sets rows of a mesh.
	set(m solver.Mesh, s solver.Stripe, src []byte)
}

// rows returns an array of a level, if it has rows s of so many bytes.
func (d *Device) rows(level int, a multigrid.Array, s solver.Stripe, bytes int) (r rows, err error) {
	switch g := d.aggregates(); {
	case a > multigrid.RightSide:
		r = d.setUp(level, a)
	case level == 0:
		r = d.finest.array(a)
	case g != nil:
		r = g.array(a)
	default:
		r = d.coarse[level-1].array(a)
	}
	return r, r.check(s, bytes)
}

// CopyRows implements multigrid.Device.
func (d *Device) CopyRows(_ context.Context, level int, a multigrid.Array, s solver.Stripe, dst []byte) error {
	r, err := d.rows(level, a, s, len(dst))
	if err == nil {
		r.copyTo(dst, s)
	}
	return err
}

// SetRows implements multigrid.Device.
func (d *Device) SetRows(_ context.Context, level int, a multigrid.Array, s solver.Stripe, src []byte) error {
	if a > multigrid.RightSide && level == 0 {
		return errArray
	}
	r, err := d.rows(level, a, s, len(src))
	if err == nil {
		r.set(d.layout.Plan.Levels[level].Mesh, s, src)
	}
	return err
}

// array returns an array of the level.
func (l *level[F]) array(a multigrid.Array) array[F] {
	if a == multigrid.RightSide {
		return l.b
	}
	return l.u
}

// errArray is the error for an array that a level lacks.
var errArray = errors.New("cpu levels: no such array")

// check implements rows.
func (a array[F]) check(s solver.Stripe, bytes int) error {
	if a.rows == nil {
		return errArray
	}
	size := len(a.rows[0]) * int(unsafe.Sizeof(F(0)))
	if s.Rows() < 0 || s.Rows() > 0 && !(a.has(s.Lo) && a.has(s.Hi-1)) || bytes != s.Rows()*size {
		return fmt.Errorf("cpu levels: rows %v in %d bytes: rows [%d, %d) of %d bytes are held", s, bytes, a.lo,
			a.lo+len(a.rows), size)
	}
	return nil
}

// copyTo implements rows.
func (a array[F]) copyTo(dst []byte, s solver.Stripe) {
	for y := s.Lo; y < s.Hi; y++ {
		dst = dst[copy(dst, bytesOf(a.at(y))):]
	}
}

// set implements rows.
func (a array[F]) set(m solver.Mesh, s solver.Stripe, src []byte) {
	for y := s.Lo; y < s.Hi; y++ {
		src = src[copy(bytesOf(a.at(y)), src):]
		repeat(a.at(y), m)
	}
}

// Bytes implements multigrid.Device.
func (d *Device) Bytes() int64 {
	if a := d.aggregates(); a != nil {
		return 3*arrayBytes(d.layout, 0) + pointBytes(d.layout, 0, 0) + a.bytes()
	}
	return MemoryBytes(d.layout)
}

// Describe names the device, as in "cpu portable, 2 threads".
func (d *Device) Describe() string {
	return fmt.Sprintf("cpu %s, %s", d.Kernel(), english.Plural(d.threads, "thread", ""))
}

// Kernel returns the name of the kernel.
func (d *Device) Kernel() string { return d.kernel }

// Close implements multigrid.Device.
func (d *Device) Close() error { return nil }
