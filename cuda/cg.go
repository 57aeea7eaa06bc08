package cuda

import (
	"context"
	"encoding/binary"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The numbers of kernels/dot.cuh and kernels/search.cuh.
const (
	dotBins      = 12
	dotWords     = dotBins + 1
	products     = len(multigrid.Products{})
	productBytes = 8 * products * dotWords

	productWarps  = 4 // of a block
	productShared = productWarps * products * dotBins * warpSize * 8
	productStep   = (warpSize - 2) * solver.GroupCols
	stepThreads   = 256 // of a block, each with two columns
	stepRows      = 8   // of a block
)

// productSums is struct ProductSums in kernels/search.cuh.
type productSums struct {
	u, x, p, b            driver.DevicePtr // where row 0 is or would be
	sums                  driver.DevicePtr
	h, q                  float64
	unitShift, unitBits   int32
	pitch, nx             int32
	lo, hi                int32
	columnLo, columnHi    int32
	halfRows, halfColumns [2]int32
	strips, segments      int32
	rows, columns         span
}

// step is struct Step.
type step struct {
	u, x, p         driver.DevicePtr
	a, b            float64
	pitch, nx       int32
	lo, hi          int32
	strips, segment int32
}

// CG implements multigrid.CG for Levels, whose field, stream and memory for copies it shares. It is closed with
// them.
type CG struct {
	levels  *Levels
	x, p    field
	kept    bool             // x is the field
	sums    driver.DevicePtr // dotWords for each of the products
	pinned  *driver.HostMemory
	arrived *driver.Event // of the sums
	bytes   int64

	multiply, change call
	step             *step // of change
}

// NewCG allocates the CG of levels.
func NewCG(v *Levels) (*CG, error) { return newCG(v, false) }

// newCG is NewCG, with kernels from PTX if ptx is set.
func newCG(v *Levels, ptx bool) (*CG, error) {
	s := &CG{levels: v}
	before := v.dev.bytes
	err := s.open(ptx)
	s.bytes, v.dev.bytes = v.dev.bytes-before, before // these bytes are not those of the levels
	if err != nil {
		return nil, fmt.Errorf("cuda conjugate gradients on device %d (%s): %w", v.dev.gpu.Index, v.dev.gpu.Name, err)
	}
	return s, nil
}

// open allocates the arrays and loads the kernels.
func (s *CG) open(ptx bool) (err error) {
	v, d := s.levels, s.levels.dev
	var m *driver.Module
	if m, err = d.context.Load(code{cgPTX, cg90}.on(d.gpu, ptx)); err != nil {
		return err
	}
	s.x, s.p = v.levels[0].u, v.levels[0].u
	for _, a := range []*field{&s.x, &s.p} {
		if a.base, err = d.alloc(a.bytes()); err != nil {
			return err
		}
	}
	if s.sums, err = d.alloc(int64(productBytes)); err != nil {
		return err
	}
	if s.pinned, err = d.allocHost(productBytes); err != nil {
		return err
	}
	if err := d.newEvents(&s.arrived); err != nil {
		return err
	}
	if v.weighted != nil {
		s.multiply, err = v.weighted.productsOf(s)
	} else {
		s.multiply, err = s.productsFrom(m)
	}
	if err != nil {
		return err
	}
	return s.prepareStep(m)
}

// productsFrom returns the kernel of the products.
func (s *CG) productsFrom(m *driver.Module) (c call, err error) {
	v, l := s.levels, s.levels.levels[0]
	name := "search_products"
	if l.hasB {
		name = "search_products_source"
	}
	c = call{threads: productWarps * warpSize, shared: productShared}
	if c.f, err = m.Function(name); err != nil {
		return c, err
	}
	if err := c.f.SetDynamicShared(c.shared); err != nil {
		return c, err
	}
	held, err := c.f.BlocksPerSM(c.threads, c.shared)
	if err != nil {
		return c, err
	}
	a := &productSums{
		u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), b: l.b.origin(), sums: s.sums, h: l.Scale, q: l.Blend,
		unitShift: dotShift(v.layout.Magnitude), unitBits: multigrid.DotBits,
		pitch: int32(l.u.pitch / 8), nx: int32(l.Mesh.NX), lo: int32(l.own.Lo), hi: int32(l.own.Hi),
		halfRows: halves(l.Mesh.NY, l.Mesh.Walls.Top, l.Mesh.Walls.Bottom),
		rows:     l.rowSpan(), columns: l.columnSpan(),
	}
	a.halfColumns = halves(l.Mesh.NX, l.Mesh.Walls.Left, l.Mesh.Walls.Right)
	a.columnLo, a.columnHi = a.columns.regular()
	strips := (l.Mesh.NX + productStep - 1) / productStep
	groups := (l.own.Hi+solver.GroupRows-1)/solver.GroupRows - l.own.Lo/solver.GroupRows
	segments := min(groups, max(1, max(held, 1)*v.dev.gpu.SMs*productWarps/strips))
	a.strips, a.segments = int32(strips), int32(segments)
	c.blocks = (strips*segments + productWarps - 1) / productWarps
	c.args, err = c.f.Args(a)
	return c, err
}

// dotShift is DotUnit.shift in kernels/dot.cuh.
func dotShift(e solver.Magnitude) int32 { return int32(multigrid.DotUnit - 1075 - 2*int(e)) }

// halves returns the first and the last of n points where the wall there makes d count half.
func halves(n int, low, high solver.Wall) [2]int32 {
	at := [2]int32{nowhere, nowhere}
	if low == solver.Neumann {
		at[0] = 0
	}
	if high == solver.Neumann {
		at[1] = int32(n - 1)
	}
	return at
}

// prepareStep sets up the kernel of the step, which changes all rows that are held.
func (s *CG) prepareStep(m *driver.Module) (err error) {
	l := s.levels.levels[0]
	rows := l.u.rows
	s.step = &step{
		u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), pitch: int32(l.u.pitch / 8), nx: int32(l.Mesh.NX),
		lo: int32(rows.Lo), hi: int32(rows.Hi), strips: int32((l.Mesh.NX + 2*stepThreads - 1) / (2 * stepThreads)),
		segment: stepRows,
	}
	s.change, err = newCall(m, "search_step", s.step, stepThreads)
	s.change.blocks = int(s.step.strips) * ((rows.Rows() + stepRows - 1) / stepRows)
	return err
}

// Load implements multigrid.CG.
func (s *CG) Load(ctx context.Context, rows solver.RowSource) error {
	v := s.levels
	if err := v.stream.Fill(s.p.base, 0, int(s.p.bytes())); err != nil {
		return err
	}
	if rows != nil {
		if err := v.fill(ctx, upload{to: s.p, from: solver.RowsOf(rows)}); err != nil {
			return fmt.Errorf("direction: %w", err)
		}
	}
	s.kept = false
	return v.await(ctx)
}

// Keep implements multigrid.CG. After Step, x is the field already.
func (s *CG) Keep(context.Context) error {
	if s.kept {
		return nil
	}
	s.kept = true
	return s.levels.stream.CopyOnDevice(s.x.base, s.levels.levels[0].u.base, int(s.x.bytes()))
}

// Products implements multigrid.CG.
func (s *CG) Products(ctx context.Context) (multigrid.Products, error) {
	if err := s.launchProducts(); err != nil {
		return multigrid.Products{}, err
	}
	if err := s.levels.dev.await(ctx, s.arrived); err != nil {
		return multigrid.Products{}, err
	}
	return decodeProducts(s.pinned.Bytes()), nil
}

// launchProducts puts the products, and the copy of their words to the host, into the stream.
func (s *CG) launchProducts() error {
	stream := s.levels.stream
	if err := stream.Fill(s.sums, 0, productBytes); err != nil {
		return err
	}
	m := s.levels.dev.times.begin(stream, solver.Work{Kind: solver.WorkCG})
	if err := s.multiply.launch(stream); err != nil {
		return err
	}
	m.end()
	if err := stream.CopyFromDevice(s.pinned, 0, s.sums, productBytes); err != nil {
		return err
	}
	return s.arrived.Record(stream)
}

// decodeProducts returns the sums in the words of the kernel: for each of them bins of 32 bits, and the number of lanes
// that found a bad term.
func decodeProducts(words []byte) (p multigrid.Products) {
	for i := range p {
		for k := range dotWords {
			n := int64(binary.LittleEndian.Uint64(words[8*(i*dotWords+k):]))
			switch {
			case k < dotBins:
				p[i].AddScaled(n, 32*k)
			case n != 0:
				p[i].Spoil()
			}
		}
	}
	return p
}

// Step implements multigrid.CG.
func (s *CG) Step(ctx context.Context, a, b float64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.step.a, s.step.b = a, b
	defer s.levels.dev.times.begin(s.levels.stream, solver.Work{Kind: solver.WorkCG}).end()
	return s.change.launch(s.levels.stream)
}

// CopyRows implements multigrid.CG.
func (s *CG) CopyRows(ctx context.Context, rows solver.Stripe, dst []byte) error {
	l := s.levels.levels[0]
	width := l.Mesh.RowBytes()
	if rows.Lo < s.p.rows.Lo || rows.Hi > s.p.rows.Hi || rows.Rows() < 0 || len(dst) != rows.Rows()*width {
		return fmt.Errorf("cuda conjugate gradients: rows %v in %d bytes: rows %v of %d bytes are held", rows, len(dst),
			s.p.rows, width)
	}
	if err := s.levels.read(ctx, s.p, 0, width, rows, dst); err != nil {
		return err
	}
	if l.Mesh.PeriodicColumns() {
		for at := 0; at < len(dst); at += width {
			row := dst[at : at+width]
			copy(row[:8], row[width-16:])
			copy(row[width-8:], row[8:16])
		}
	}
	return nil
}

// Bytes implements multigrid.CG.
func (s *CG) Bytes() int64 { return s.bytes }

// CGBytes returns the bytes of GPU memory that NewCG allocates.
func CGBytes(l multigrid.Layout) int64 {
	v := newLevel(l, 0)
	return 2*v.u.bytes() + int64(productBytes)
}
