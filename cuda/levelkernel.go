package cuda

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// The multigrid kernels, as those in kernel.go.
var (
	//go:embed kernels/multigrid.ptx
	multigridPTX []byte
	//go:embed kernels/multigrid_90.cubin
	multigrid90 []byte
)

func levelsImage(d *driver.Device, ptx bool) []byte {
	if !ptx && d.Major == 9 && d.Minor == 0 {
		return multigrid90
	}
	return multigridPTX
}

// smooth is the argument of the kernels down_* and up_*: struct Smooth in kernels/multigrid_level.cuh.
type smooth[F float32 | float64] struct {
	from, to, b                                   driver.DevicePtr // where row 0 is or would be
	sums                                          driver.DevicePtr
	bias                                          [limbs]float64
	scale                                         float64
	restricted, taps, betweenRows, betweenColumns driver.DevicePtr
	coarseB, coarseU, fixed                       driver.DevicePtr
	h, q                                          F
	w                                             [multigrid.Sweeps]F
	gain                                          float32
	pitch, coarsePitch, fixedPitch                int32 // values
	nx                                            int32
	rows, columns, coarseRows, coarseColumns      span
	outLo, outHi, countLo, countHi                int32
	coarseLo, coarseHi, regularLo, regularHi      int32
	fineX, coarseX, fineY, coarseY                int32
	strips, segments, outerSegments, align        int32
}

// smoothShape describes a kernel down_* or up_*: struct SmoothShape in kernels/multigrid_shapes.cuh, and what
// determines the shared memory of a warp.
type smoothShape struct {
	name                         string
	columns, ahead, warps, perSM int
	size                         int // bytes of a value
	source, zero, up             bool
}

var smoothShapes = []smoothShape{
	{name: "down_f64", columns: 4, ahead: 1, warps: 4, perSM: 2, size: 8},
	{name: "down_source_f64", columns: 2, ahead: 1, warps: 4, perSM: 3, size: 8, source: true},
	{name: "down_f32", columns: 4, ahead: 1, warps: 4, perSM: 4, size: 4, source: true, zero: true},
	{name: "up_f64", columns: 4, ahead: 1, warps: 4, perSM: 3, size: 8, up: true},
	{name: "up_source_f64", columns: 2, ahead: 1, warps: 4, perSM: 4, size: 8, source: true, up: true},
	{name: "up_f32", columns: 4, ahead: 1, warps: 4, perSM: 4, size: 4, source: true, up: true},
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

func loadSmooth(m *driver.Module, dev *driver.Device, s smoothShape) (*smoothKernel, error) {
	f, err := m.Function(s.name)
	if err != nil {
		return nil, err
	}
	if s.blockBytes() > dev.SharedBytes {
		return nil, fmt.Errorf("kernel %s: %d bytes of shared memory: the GPU has %d", s.name, s.blockBytes(),
			dev.SharedBytes)
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

// parts divides a level of nx columns and rows rows, in pieces of align, among the warps that run at once. A part takes
// a step for each of its rows and some more. With n warps on a multiprocessor, each of them takes time in proportion to
// n + idle for a step.
func (k *smoothKernel) parts(nx, rows, align int) (strips, segments, outerSegments int) {
	const (
		outerCost = 1.75 // of a step of the first and the last strip, relative to others
		idle      = 4
	)
	strips = (nx + k.step() - 1) / k.step()
	outers := min(strips, 2)
	weight := float64(strips-outers) + float64(outers)*outerCost // parts for one segment
	most := min(max(1, int(float64(k.capacity)/weight)), max(1, rows/max(align, 4)))
	more := 20.0
	if k.up {
		more = 12
	}
	best := math.Inf(1)
	for n := 1; n <= most; n++ {
		cost := (float64(rows)/float64(n) + more) * (float64(n)*weight/float64(k.sms) + idle)
		if cost < best {
			best, segments = cost, n
		}
	}
	return strips, segments, min(int(math.Ceil(outerCost*float64(segments))), max(1, rows/max(align, 4)))
}

// withFixed returns the shapes, and those of the kernels for fixed points inside the mesh, which are the same.
func withFixed(shapes []smoothShape) []smoothShape {
	all := slices.Clone(shapes)
	for _, s := range shapes {
		s.name = strings.Replace(s.name, "_", "_fixed_", 1)
		all = append(all, s)
	}
	return all
}

// smoothing is a kernel with its arguments for a level.
type smoothing struct {
	kernel *smoothKernel
	args   *driver.Args
	blocks int
}

func (s *smoothing) launch(stream *driver.Stream) error {
	return s.kernel.f.Launch(stream, driver.Dim{X: s.blocks}, driver.Dim{X: s.kernel.warps * warpSize},
		s.kernel.blockBytes(), s.args)
}

// prepare uploads the tables between a level and the next one and sets up their kernels.
func (v *Levels) prepare(i int, l, next *level) error {
	tables, err := v.upload(l, next)
	if err != nil {
		return err
	}
	kind := ""
	if l.fixed != 0 {
		kind = "fixed_"
	}
	if i > 0 {
		if l.down, err = newSmoothing[float32](v, l, next, tables, v.kernels["down_"+kind+"f32"]); err != nil {
			return err
		}
		l.up, err = newSmoothing[float32](v, l, next, tables, v.kernels["up_"+kind+"f32"])
		return err
	}
	kind += "f64"
	if l.hasB {
		kind = strings.Replace(kind, "f64", "source_f64", 1)
	}
	if l.down, err = newSmoothing[float64](v, l, next, tables, v.kernels["down_"+kind]); err != nil {
		return err
	}
	l.up, err = newSmoothing[float64](v, l, next, tables, v.kernels["up_"+kind])
	return err
}

// tables are the tables between a level and the next one, on the device.
type tables struct{ restricted, taps, betweenRows, betweenColumns driver.DevicePtr }

func (v *Levels) upload(l, next *level) (t tables, err error) {
	m, c := l.Mesh, next.Mesh
	if t.restricted, err = uploadTable(v.dev, restrictedRows(l.Y, m.NY)); err != nil {
		return t, err
	}
	if t.taps, err = uploadTable(v.dev, tapsOf(l.X, m.NX, c.NX)); err != nil {
		return t, err
	}
	if t.betweenRows, err = uploadTable(v.dev, betweenPoints(l.Y, m.NY)); err != nil {
		return t, err
	}
	t.betweenColumns, err = uploadTable(v.dev, betweenPoints(l.X, m.NX))
	return t, err
}

// uploadTable copies a table to the device.
func uploadTable[T any](d *device, table []T) (driver.DevicePtr, error) {
	n := len(table) * int(unsafe.Sizeof(table[0]))
	p, err := d.alloc(int64(n))
	if err != nil {
		return 0, err
	}
	return p, d.context.CopyToDevice(p, unsafe.Slice((*byte)(unsafe.Pointer(&table[0])), n))
}

// newSmoothing returns a kernel with its arguments for a level.
func newSmoothing[F float32 | float64](v *Levels, l, next *level, t tables, k *smoothKernel) (*smoothing, error) {
	size := l.Mesh.DType.Size()
	s := &smooth[F]{
		b: l.b.origin(), sums: v.counts, bias: biases(v.layout.Magnitude), scale: 1,
		restricted: t.restricted, taps: t.taps, betweenRows: t.betweenRows, betweenColumns: t.betweenColumns,
		coarseB: next.b.origin(), coarseU: next.u.origin(),
		h: F(l.Scale), q: F(l.Blend), gain: float32(l.Gain),
		pitch: int32(l.u.pitch / size), coarsePitch: int32(next.u.pitch / 4), nx: int32(l.Mesh.NX),
		rows: l.rowSpan(), columns: l.columnSpan(), coarseRows: next.rowSpan(), coarseColumns: next.columnSpan(),
		countLo: int32(l.own.Lo), countHi: int32(l.own.Hi), align: 1,
		fineX: int32(l.X.Fine), coarseX: int32(l.X.Coarse), fineY: int32(l.Y.Fine), coarseY: int32(l.Y.Coarse),
	}
	s.regularLo, s.regularHi = s.rows.regular()
	if l.fixed != 0 {
		words := l.fixedWords()
		s.fixed, s.fixedPitch = l.fixed-driver.DevicePtr(int64(l.u.rows.Lo*4*words)), int32(words)
	}
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
	strips, segments, outers := k.parts(l.Mesh.NX, out.Rows(), int(s.align))
	s.strips, s.segments, s.outerSegments = int32(strips), int32(segments), int32(outers)
	args, err := k.f.Args(s)
	if err != nil {
		return nil, err
	}
	warps := min(strips, 2)*outers + max(strips-2, 0)*segments
	return &smoothing{kernel: k, args: args, blocks: (warps + k.warps - 1) / k.warps}, nil
}

// restricts returns the rows of a level whose right-hand side this rank computes.
func (v *Levels) restricts(l *level) solver.Stripe {
	if l != v.levels[v.layout.Tail] {
		return l.own
	}
	return v.layout.TailRows()
}

// origin returns where row 0 is or would be; 0 without memory.
func (f field) origin() driver.DevicePtr {
	if f.base == 0 {
		return 0
	}
	return f.base - driver.DevicePtr(int64(f.rows.Lo)*int64(f.pitch))
}
