package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/dustin/go-humanize"

	"jacobi/cuda/driver"
	"jacobi/internal/base/parallel"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// Levels implements multigrid.Device. All its work is in one stream, in the order of the calls; Sum and the copies wait
// for it.
type Levels struct {
	layout   multigrid.Layout
	dev      *device
	stream   *driver.Stream
	kernels  map[string]*smoothKernel
	measures []byte   // the module measure
	levels   []*level // the last one is the first level of the tail
	tail     call
	factors  driver.DevicePtr   // of the coarsest level
	window   levelWindow        // into which other ranks write; without memory unless OpenWindow was called
	counts   driver.DevicePtr   // the words of the sum of the last Down(0)
	pinned   *driver.HostMemory // their copy
	arrived  *driver.Event      // of the copy
	weighted *weighted          // nil unless the operator is weighted
}

// NewLevels opens a GPU and allocates the levels.
func NewLevels(d *driver.Driver, l multigrid.Layout, o Options) (*Levels, error) {
	shapes := smoothShapes
	if l.Plan.Weighted {
		shapes = nil
	}
	return newLevels(d, l, o, levelsCode(l.Plan.Weighted), shapes)
}

// newLevels is NewLevels with a module of kernels of the given shapes.
func newLevels(d *driver.Driver, l multigrid.Layout, o Options, kernels code, shapes []smoothShape) (*Levels, error) {
	v := &Levels{layout: l, kernels: map[string]*smoothKernel{}}
	if err := v.checkLayout(); err != nil {
		return nil, err
	}
	gpu, err := o.gpu(d)
	if err != nil {
		return nil, fmt.Errorf("cuda levels: %w", err)
	}
	v.dev = &device{gpu: gpu, timeout: o.Timeout}
	v.measures = code{measurePTX, measure90}.on(gpu, o.PTX)
	if err := v.open(kernels.on(gpu, o.PTX), shapes); err != nil {
		err = fmt.Errorf("cuda levels on device %d (%s): %w", o.Device, v.dev.gpu.Name, err)
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

func (v *Levels) checkLayout() error {
	if l := v.layout; l.Agglomerated < 1 || l.Agglomerated >= len(l.Plan.Levels) || len(l.Stripes) != l.Agglomerated {
		return fmt.Errorf("cuda levels: %d levels, whole from %d on, %d stripes", len(l.Plan.Levels), l.Agglomerated,
			len(l.Stripes))
	}
	return nil
}

// open loads the module image, which has kernels of the given shapes.
func (v *Levels) open(image []byte, shapes []smoothShape) (err error) {
	d := v.dev
	if err := d.loadModule(image); err != nil {
		return err
	}
	if v.stream, err = d.context.NewStream(0); err != nil {
		return err
	}
	d.onClose(v.stream.Close)
	if err := d.newEvents(&d.emptied, &d.staged[0], &d.staged[1], &d.staged[2], &d.staged[3], &v.arrived); err != nil {
		return err
	}
	width := v.layout.Plan.Levels[0].Mesh.RowBytes()
	staging := chunkBytes
	if v.layout.Plan.Weighted { // each quarter has four values of a row for each core, which works them out
		staging = min(16*staging, max(4*staging, 4*4*runtime.GOMAXPROCS(0)*width))
	}
	if d.staging, err = d.allocHost(max(staging, width)); err != nil {
		return err
	}
	if v.counts, err = d.alloc(sumBytes); err != nil {
		return err
	}
	if v.pinned, err = d.allocHost(sumBytes); err != nil {
		return err
	}
	for _, s := range shapes {
		k, err := loadSmooth(d.module, d.gpu, s)
		if err != nil {
			return err
		}
		if k != nil {
			v.kernels[s.name] = k
		}
	}
	if err := v.openLevels(); err != nil {
		return err
	}
	return v.stream.Synchronize()
}

// openLevels allocates the levels and prepares their kernels.
func (v *Levels) openLevels() error {
	if v.layout.Plan.Weighted {
		return v.openWeighted()
	}
	first := tailStart(v.layout)
	for i := range first + 1 {
		l := newLevel(v.layout, i)
		if err := v.allocate(l); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
		v.levels = append(v.levels, l)
	}
	for i, l := range v.levels[:first] {
		if err := v.prepare(l, v.levels[i+1]); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	var err error
	v.tail, err = v.openTail(first)
	return err
}

// allocate allocates the arrays of a level and fills them with zeros: the walls of corrections stay 0, and kernels read
// what follows a row.
func (v *Levels) allocate(l *level) error { return v.zero(l.arrays(), v.dev.alloc) }

// zero allocates arrays of zeros.
func (v *Levels) zero(arrays []*field, alloc func(int64) (driver.DevicePtr, error)) error {
	for _, a := range arrays {
		bytes := a.bytes() + slack
		var err error
		if a.base, err = alloc(bytes); err != nil {
			return fmt.Errorf("%s for rows %v: %w", humanize.IBytes(uint64(bytes)), a.rows, err)
		}
		if err := v.stream.Fill(a.base, 0, int(bytes)); err != nil {
			return err
		}
	}
	return nil
}

// Load implements multigrid.Device.
func (v *Levels) Load(ctx context.Context, rows solver.RowSource) error {
	l := v.levels[0]
	if err := v.fill(ctx, upload{to: l.u, from: solver.RowsOf(rows)}); err != nil {
		return err
	}
	switch {
	case v.weighted != nil:
		if err := v.weighted.load(ctx); err != nil {
			return err
		}
	case v.layout.Values != nil:
		if err := v.fill(ctx, newUpload(l.b, v.layout.Values, solver.Source)); err != nil {
			return err
		}
	}
	// The fixed rows of both arrays are the same.
	if err := v.stream.CopyOnDevice(l.v.base, l.u.base, int(l.u.bytes())); err != nil {
		return err
	}
	return v.await(ctx)
}

// fill fills arrays of level 0.
func (v *Levels) fill(ctx context.Context, arrays ...upload) error {
	return v.dev.load(ctx, v.stream, v.levels[0].Mesh, arrays...)
}

// Down implements multigrid.Device.
func (v *Levels) Down(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if level > 0 {
		return v.do(solver.WorkDown, level, v.levels[level].down)
	}
	if err := v.stream.Fill(v.counts, 0, sumBytes); err != nil {
		return err
	}
	if err := v.do(solver.WorkDown, 0, v.levels[0].down); err != nil {
		return err
	}
	sums := v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkSums})
	if err := v.stream.CopyFromDevice(v.pinned, 0, v.counts, sumBytes); err != nil {
		return err
	}
	sums.end()
	return v.arrived.Record(v.stream)
}

// do puts the work of a level into the stream.
func (v *Levels) do(kind solver.WorkKind, level int, work []call) error {
	defer v.dev.times.begin(v.stream, solver.Work{Kind: kind, Level: level}).end()
	return launchAll(v.stream, work)
}

// Sum implements multigrid.Device.
func (v *Levels) Sum(ctx context.Context) (solver.Sum, error) {
	if err := v.dev.await(ctx, v.arrived); err != nil {
		return solver.Sum{}, err
	}
	return decodeSum(v.pinned.Bytes(), make([]byte, sumBytes)), nil
}

// Agglomerate implements multigrid.Device.
func (v *Levels) Agglomerate(ctx context.Context) error {
	if w := v.weighted; w != nil && w.sets != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		defer v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkTail, Level: v.layout.Agglomerated}).end()
		return w.sets.solve(ctx)
	}
	return v.cycles(ctx, v.layout.Agglomerated)
}

// cycles does the cycle of a level that is held as a whole, and does it twice where the plan has it.
func (v *Levels) cycles(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if level == len(v.levels)-1 {
		return v.do(solver.WorkTail, level, []call{v.tail})
	}
	l := v.levels[level]
	for i := range v.layout.Plan.CycleIndex(level) {
		down := l.down
		if i > 0 {
			down = l.again
		}
		if err := v.do(solver.WorkDown, level, down); err != nil {
			return err
		}
		if err := v.cycles(ctx, level+1); err != nil {
			return err
		}
		if err := v.do(solver.WorkUp, level, l.up); err != nil {
			return err
		}
	}
	return nil
}

// Up implements multigrid.Device.
func (v *Levels) Up(ctx context.Context, level int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return v.do(solver.WorkUp, level, v.levels[level].up)
}

// array returns an array of a level. It fails unless the array holds rows s and their dense length is bytes.
func (v *Levels) array(level int, a multigrid.Array, s solver.Stripe, bytes int) (*field, error) {
	if level < 0 || level >= len(v.levels) {
		return nil, fmt.Errorf("cuda levels: level %d: only those up to %d are copied", level, len(v.levels)-1)
	}
	l := v.levels[level]
	f := &l.u
	switch {
	case a == multigrid.RightSide:
		f = &l.b
	case a > multigrid.RightSide:
		if level == 0 || v.weighted == nil || !v.weighted.setUp || a > multigrid.Scaling {
			return nil, errSetUp
		}
		f = &v.weighted.wide[level][a-multigrid.Centre]
	}
	width := v.layout.Plan.RowBytes(level, a)
	if f.base == 0 || s.Lo < f.rows.Lo || s.Hi > f.rows.Hi || s.Rows() < 0 || bytes != s.Rows()*width {
		return nil, fmt.Errorf("cuda levels: level %d, array %d: rows %v in %d bytes: rows %v of %d bytes are held",
			level, a, s, bytes, f.rows, width)
	}
	return f, nil
}

// CopyRows implements multigrid.Device.
func (v *Levels) CopyRows(ctx context.Context, level int, a multigrid.Array, s solver.Stripe, dst []byte) error {
	if level == 0 && a > multigrid.RightSide && a <= multigrid.South && v.weighted != nil {
		return v.weighted.copyEquations(ctx, a, s, dst)
	}
	f, err := v.array(level, a, s, len(dst))
	if err != nil {
		return err
	}
	return v.read(ctx, *f, level, v.layout.Plan.RowBytes(level, a), s, dst)
}

// read copies rows of `width` bytes of an array of a level to dst.
func (v *Levels) read(ctx context.Context, f field, level, width int, s solver.Stripe, dst []byte) error {
	for lo, chunk := s.Lo, len(v.dev.staging.Bytes())/width; lo < s.Hi; lo += chunk {
		n := min(chunk, s.Hi-lo)
		m := v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkToHost, Level: level, Rows: n})
		if err := v.copyRows(v.dev.staging.Rows, f.at(lo).Rows, f.pitch, width, n, false); err != nil {
			return err
		}
		m.end()
		if err := v.await(ctx); err != nil {
			return err
		}
		to, from := dst[(lo-s.Lo)*width:], v.dev.staging.Bytes()
		_ = parallel.Each(n, func(i int) error { // one core copies 10 GB/s
			copy(to[i*width:][:width], from[i*width:])
			return nil
		})
	}
	return nil
}

// copyRows copies rows between the host, where they are dense, and the device. Rows that are dense there, too, are
// copied as one.
func (v *Levels) copyRows(host func(offset, pitch int) driver.Rows, device func(pitch int) driver.Rows, pitch, width,
	n int, toDevice bool) error {
	if pitch == width {
		pitch, width, n = n*width, n*width, 1
	}
	to, from := host(0, width), device(pitch)
	if toDevice {
		to, from = from, to
	}
	return v.stream.Copy2D(to, from, width, n)
}

// SetRows implements multigrid.Device.
func (v *Levels) SetRows(ctx context.Context, level int, a multigrid.Array, s solver.Stripe, src []byte) error {
	f, err := v.array(level, a, s, len(src))
	if err != nil {
		return err
	}
	width := v.layout.Plan.RowBytes(level, a)
	for lo, chunk := s.Lo, len(v.dev.staging.Bytes())/width; lo < s.Hi; lo += chunk {
		n := min(chunk, s.Hi-lo)
		copy(v.dev.staging.Bytes(), src[(lo-s.Lo)*width:(lo-s.Lo+n)*width])
		m := v.dev.times.begin(v.stream, solver.Work{Kind: solver.WorkFromHost, Level: level, Rows: n})
		if err := v.copyRows(v.dev.staging.Rows, f.at(lo).Rows, f.pitch, width, n, true); err != nil {
			return err
		}
		m.end()
		if err := v.await(ctx); err != nil { // before the staging memory is used again
			return err
		}
	}
	return nil
}

// await waits for all work in the stream.
func (v *Levels) await(ctx context.Context) error {
	return v.dev.awaitAll(ctx, v.stream)
}

// LevelsBytes returns the bytes of GPU memory that NewLevels allocates.
func LevelsBytes(l multigrid.Layout) int64 {
	if l.Plan.Weighted {
		return weightedBytes(l)
	}
	bytes := int64(sumBytes)
	first := tailStart(l)
	for i := range first + 1 {
		v := newLevel(l, i)
		for _, a := range v.arrays() {
			bytes += a.bytes() + slack
		}
		if i == first {
			break
		}
		fine, coarse := v.Mesh, l.Plan.Levels[i+1].Mesh
		bytes += int64(unsafe.Sizeof(between{})) * int64(fine.NX+fine.NY+4*beyond)
		bytes += int64(unsafe.Sizeof(taps{})) * int64(coarse.NX+coarse.NY)
		bytes += int64(unsafe.Sizeof(restricted{})) * int64(fine.NY+2*beyond)
	}
	return bytes + tailMemory(l, first)
}

// Describe names the device.
func (v *Levels) Describe() string {
	return fmt.Sprintf("cuda %d, %s", v.dev.gpu.Index, v.dev.gpu.Name)
}

// Bytes implements multigrid.Device.
func (v *Levels) Bytes() int64 { return v.dev.bytes }

// Close implements multigrid.Device.
func (v *Levels) Close() error {
	return v.dev.close()
}
