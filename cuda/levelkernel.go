package cuda

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// smooth is the argument of the kernels down_* and up_*, and of those in tiles: struct Smooth in
// kernels/multigrid_level.cuh.
type smooth[F float32 | float64] struct {
	from, to, b                               driver.DevicePtr // where row 0 is or would be
	sums                                      driver.DevicePtr
	bias                                      [limbs]float64
	scale                                     float64
	restricted, taps, rowTaps                 driver.DevicePtr
	betweenRows, betweenColumns               driver.DevicePtr
	coarseB, coarseU                          driver.DevicePtr
	h, q                                      F
	w                                         [multigrid.SmootherSweeps]F
	gain                                      float32
	pitch, coarsePitch                        int32 // values
	nx                                        int32
	rows, columns, coarseRows, coarseColumns  span
	outLo, outHi, countLo, countHi            int32
	coarseLo, coarseHi, regularLo, regularHi  int32
	fineX, coarseX, fineY, coarseY            int32
	strips, segments, outerSegments, tileRows int32
	align                                     int32
}

// smoothShape describes a kernel down_* or up_*: struct SmoothShape or TileShape in kernels/multigrid_shapes.cuh, and
// what determines its shared memory.
type smoothShape struct {
	name                         string
	columns, ahead, warps, perSM int
	rows                         int // of a lane, in tiles; 0: rows stream through warps
	size                         int // bytes of a value
	source, zero, up             bool
}

var smoothShapes = []smoothShape{
	{name: "down_f64", columns: 4, ahead: 1, warps: 8, perSM: 1, size: 8},
	{name: "down_source_f64", columns: 2, ahead: 2, warps: 4, perSM: 3, size: 8, source: true},
	{name: "down_f32", columns: 4, ahead: 1, warps: 8, perSM: 2, size: 4, source: true, zero: true},
	{name: "up_f64", columns: 2, ahead: 1, warps: 4, perSM: 4, size: 8, up: true},
	{name: "up_source_f64", columns: 2, ahead: 1, warps: 4, perSM: 4, size: 8, source: true, up: true},
	{name: "up_f32", columns: 4, ahead: 1, warps: 4, perSM: 3, size: 4, source: true, up: true},
	{name: "tile_down_f64", columns: 4, rows: 8, warps: 12, perSM: 1, size: 8},
	{name: "tile_down_source_f64", columns: 4, rows: 8, warps: 12, perSM: 1, size: 8, source: true},
	{name: "tile_down_f32", columns: 4, rows: 8, warps: 12, perSM: 1, size: 4, source: true, zero: true},
	{name: "tile_down_small_f32", columns: 2, rows: 4, warps: 12, perSM: 2, size: 4, source: true, zero: true},
	{name: "tile_up_f64", columns: 4, rows: 8, warps: 12, perSM: 1, size: 8, up: true},
	{name: "tile_up_source_f64", columns: 4, rows: 8, warps: 12, perSM: 1, size: 8, source: true, up: true},
	{name: "tile_up_f32", columns: 4, rows: 8, warps: 12, perSM: 1, size: 4, source: true, up: true},
	{name: "tile_up_small_f32", columns: 2, rows: 4, warps: 12, perSM: 2, size: 4, source: true, up: true},
}

const (
	phases     = 3 // rows of a group in the ring of a warp
	ringBehind = 3 // groups of b behind the present one
)

// step returns the distance of two strips: Kind::kStep.
func (s smoothShape) step() int {
	if s.up {
		return warpSize*s.columns - 8
	}
	return warpSize*s.columns - 16
}

// warpBytes returns the shared memory of a warp: Kind::kBytes.
func (s smoothShape) warpBytes() int {
	group := phases * warpSize * s.columns * s.size
	n := warpSize * s.columns * 4
	if s.up {
		n = phases * warpSize * (s.columns + 1) * 4
	}
	if !s.zero {
		n += group * (1 + s.ahead)
	}
	if s.source {
		n += group * (ringBehind + 1 + s.ahead)
	}
	return n
}

// blockBytes returns the shared memory of a block.
func (s smoothShape) blockBytes() int {
	if s.rows > 0 {
		return s.tileBytes()
	}
	n := s.warps * s.warpBytes()
	if !s.up {
		n += s.warps * sumBytes
	}
	return n
}

// smoothKernel is a loaded kernel.
type smoothKernel struct {
	smoothShape
	f        *driver.Function
	sms      int
	capacity int // warps that run at once
}

// loadSmooth loads a kernel. It returns nil for one in tiles that needs more shared memory than the GPU has.
func loadSmooth(m *driver.Module, dev *driver.Device, s smoothShape) (*smoothKernel, error) {
	if s.blockBytes() > dev.SharedBytes {
		if s.rows > 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("kernel %s: %d bytes of shared memory: the GPU has %d", s.name, s.blockBytes(),
			dev.SharedBytes)
	}
	f, err := m.Function(s.name)
	if err != nil {
		return nil, err
	}
	if err := f.SetDynamicShared(s.blockBytes()); err != nil {
		return nil, err
	}
	n, err := f.BlocksPerSM(s.warps*warpSize, s.blockBytes())
	if err != nil {
		return nil, err
	}
	return &smoothKernel{smoothShape: s, f: f, sms: dev.SMs, capacity: max(n, 1) * dev.SMs * s.warps}, nil
}

// levelParts is how a level is divided among the blocks of a kernel.
type levelParts struct{ strips, segments, outerSegments, tileRows, blocks int }

// divide divides rows of a level of nx columns, in pieces of align, among the warps that run at once. A warp takes a
// step for each row of its part and for some rows more. A step of a multiprocessor with n warps takes time in
// proportion to n + idle.
func (k *smoothKernel) divide(nx int, rows solver.Stripe, align int) (c levelParts) {
	if k.rows > 0 {
		return k.tiles(nx, rows, align)
	}
	const (
		outerCost = 1.75 // of a step of the first and the last strip, relative to others
		idle      = 4
	)
	c.strips = (nx + k.step() - 1) / k.step()
	outers := min(c.strips, 2)
	weight := float64(c.strips-outers) + float64(outers)*outerCost // parts for one segment
	most := min(max(1, int(float64(k.capacity)/weight)), max(1, rows.Rows()/max(align, 4)))
	more := 20.0
	if k.up {
		more = 12
	}
	best := math.Inf(1)
	for n := 1; n <= most; n++ {
		cost := (float64(rows.Rows())/float64(n) + more) * (float64(n)*weight/float64(k.sms) + idle)
		if cost < best {
			best, c.segments = cost, n
		}
	}
	c.outerSegments = min(int(math.Ceil(outerCost*float64(c.segments))), max(1, rows.Rows()/max(align, 4)))
	warps := outers*c.outerSegments + (c.strips-outers)*c.segments
	c.blocks = (warps + k.warps - 1) / k.warps
	return c
}

// prepare uploads the tables between a level and the next one and sets up their kernels.
func (v *Levels) prepare(l, next *level) error {
	tables, err := v.upload(l, next)
	if err != nil {
		return err
	}
	down, err := v.smoothingWith(l, next, tables, v.kernelOf(l, false))
	if err != nil {
		return err
	}
	up, err := v.smoothingWith(l, next, tables, v.kernelOf(l, true))
	l.down, l.up = []call{down}, []call{up}
	return err
}

// smoothingWith returns kernel k with its arguments for a level.
func (v *Levels) smoothingWith(l, next *level, t tables, k *smoothKernel) (call, error) {
	if l.Mesh.DType == solver.Float64 {
		return newSmoothing[float64](v, l, next, t, k)
	}
	return newSmoothing[float32](v, l, next, t, k)
}

// kernelOf returns the kernel for one way on a level.
func (v *Levels) kernelOf(l *level, up bool) *smoothKernel {
	way, kind := "down_", "f32"
	if up {
		way = "up_"
	}
	if l.Mesh.DType == solver.Float64 {
		if kind = "f64"; l.hasB {
			kind = "source_f64"
		}
	}
	if k := v.kernels["tile_"+way+tileKind(kind, l)]; k != nil {
		return k
	}
	return v.kernels[way+kind]
}

// tables are the tables between a level and the next one, on the device.
type tables struct{ restricted, taps, rowTaps, betweenRows, betweenColumns driver.DevicePtr }

func (v *Levels) upload(l, next *level) (tables, error) {
	m, c, u := l.Mesh, next.Mesh, uploads{dev: v.dev}
	t := tables{restricted: table(&u, restrictedRows(l.Y, m.NY)), taps: table(&u, tapsOf(l.X, m.NX, c.NX)),
		rowTaps: table(&u, tapsOf(l.Y, m.NY, c.NY)), betweenRows: table(&u, betweenPoints(l.Y, m.NY)),
		betweenColumns: table(&u, betweenPoints(l.X, m.NX))}
	return t, u.err
}

// uploads copies tables to a device until one fails.
type uploads struct {
	dev *device
	err error
}

// table copies a table to the device. It returns 0 for an empty one, and after an error.
func table[T any](u *uploads, values []T) (p driver.DevicePtr) {
	if len(values) == 0 || u.err != nil {
		return 0
	}
	n := len(values) * int(unsafe.Sizeof(values[0]))
	if p, u.err = u.dev.alloc(int64(n)); u.err == nil {
		u.err = u.dev.context.CopyToDevice(p, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), n))
	}
	return p
}

// newSmoothing returns a kernel with its arguments for a level.
func newSmoothing[F float32 | float64](v *Levels, l, next *level, t tables, k *smoothKernel) (call, error) {
	size := l.Mesh.DType.Size()
	s := &smooth[F]{
		b: l.b.origin(), sums: v.counts, bias: biases(v.layout.Magnitude), scale: 1,
		restricted: t.restricted, taps: t.taps, rowTaps: t.rowTaps,
		betweenRows: t.betweenRows, betweenColumns: t.betweenColumns,
		coarseB: next.b.origin(), coarseU: next.u.origin(),
		h: F(l.Scale), q: F(l.Blend), gain: float32(l.Gain),
		pitch: int32(l.u.pitch / size), coarsePitch: int32(next.u.pitch / 4), nx: int32(l.Mesh.NX),
		rows: l.rowSpan(), columns: l.columnSpan(), coarseRows: next.rowSpan(), coarseColumns: next.columnSpan(),
		countLo: int32(l.own.Lo), countHi: int32(l.own.Hi), align: 1,
		fineX: int32(l.X.Fine), coarseX: int32(l.X.Coarse), fineY: int32(l.Y.Fine), coarseY: int32(l.Y.Coarse),
	}
	s.regularLo, s.regularHi = s.rows.regular()
	weights := multigrid.Weights()
	if k.up {
		slices.Reverse(weights[:])
	}
	for i, w := range weights {
		s.w[i] = F(w)
	}
	out := l.left()
	if k.up {
		s.from, s.to, out = l.v.origin(), l.u.origin(), l.own
	} else {
		s.from, s.to = l.u.origin(), l.v.origin()
	}
	s.outLo, s.outHi = int32(out.Lo), int32(out.Hi)
	if l.Mesh.DType == solver.Float64 {
		e := int(v.layout.Magnitude)
		if !k.up {
			e, s.align = -e, solver.GroupRows
		}
		s.scale = math.Ldexp(1, e)
	}
	written := v.restricts(next)
	s.coarseLo, s.coarseHi = int32(written.Lo), int32(written.Hi)
	c := k.divide(l.Mesh.NX, out, int(s.align))
	s.strips, s.segments, s.outerSegments = int32(c.strips), int32(c.segments), int32(c.outerSegments)
	s.tileRows = int32(c.tileRows)
	args, err := k.f.Args(s)
	return call{f: k.f, args: args, blocks: c.blocks, threads: k.warps * warpSize, shared: k.blockBytes()}, err
}

// restricts returns the rows of a level whose right-hand side this rank computes.
func (v *Levels) restricts(l *level) solver.Stripe {
	if l != v.levels[v.layout.Agglomerated] {
		return l.own
	}
	return v.layout.AgglomeratedRows()
}

// origin returns where row 0 is or would be; 0 without memory.
func (f field) origin() driver.DevicePtr {
	if f.base == 0 {
		return 0
	}
	return f.base - driver.DevicePtr(int64(f.rows.Lo)*int64(f.pitch))
}
