package cuda

import (
	"context"
	"encoding/binary"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The numbers of kernels/dot.cuh and kernels/weighted_products.cuh.
const (
	dotBins      = 12
	dotWords     = dotBins + 1
	products     = len(multigrid.Products{})
	productBytes = 8 * products * dotWords

	stepThreads = 256 // of a block, each with two columns
	stepRows    = 8   // of a block
)

// step is struct Step.
type step struct {
	u, x, p         driver.DevicePtr
	a, b            float64
	pitch, nx       int32
	lo, hi          int32
	strips, segment int32
}

// CG implements multigrid.CG for Levels of a weighted operator, whose field, stream and memory for copies it shares. It
// is closed with them.
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
func NewCG(v *Levels) (*CG, error) {
	s := &CG{levels: v}
	before := v.dev.bytes
	err := s.open()
	s.bytes, v.dev.bytes = v.dev.bytes-before, before // these bytes are not those of the levels
	if err != nil {
		return nil, fmt.Errorf("cuda conjugate gradients on device %d (%s): %w", v.dev.gpu.Index, v.dev.gpu.Name, err)
	}
	return s, nil
}

// open allocates the arrays and prepares the kernels.
func (s *CG) open() (err error) {
	v, d := s.levels, s.levels.dev
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
	if s.multiply, err = v.weighted.productsOf(s); err != nil {
		return err
	}
	return s.prepareStep()
}

// dotShift is DotUnit.shift in kernels/dot.cuh.
func dotShift(e solver.Magnitude) int32 { return int32(multigrid.DotUnit - 1075 - 2*int(e)) }

// prepareStep sets up the kernel of the step, which changes all rows that are held.
func (s *CG) prepareStep() (err error) {
	l := s.levels.levels[0]
	rows := l.u.rows
	s.step = &step{
		u: l.u.origin(), x: s.x.origin(), p: s.p.origin(), pitch: int32(l.u.pitch / 8), nx: int32(l.Mesh.NX),
		lo: int32(rows.Lo), hi: int32(rows.Hi), strips: int32((l.Mesh.NX + 2*stepThreads - 1) / (2 * stepThreads)),
		segment: stepRows,
	}
	f := s.levels.weighted.functions["weighted_step"]
	s.change = call{f: f, blocks: int(s.step.strips) * ((rows.Rows() + stepRows - 1) / stepRows), threads: stepThreads}
	s.change.args, err = f.Args(s.step)
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

// Largest implements multigrid.CG.
func (s *CG) Largest(ctx context.Context, rows solver.Stripe) (float64, error) {
	return s.levels.largest(ctx, s.p, s.levels.levels[0].Mesh, rows)
}

// Bytes implements multigrid.CG.
func (s *CG) Bytes() int64 { return s.bytes }

// CGBytes returns the bytes of GPU memory that NewCG allocates.
func CGBytes(l multigrid.Layout) int64 {
	v := newLevel(l, 0)
	return 2*v.u.bytes() + int64(productBytes)
}
