package cuda

import (
	_ "embed"
	"fmt"
	"math"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// The kernels: for any GPU of compute capability 8.0 and up, finished by the driver, and finished for 9.0.
var (
	//go:embed kernels/sweep.ptx
	sweepPTX []byte
	//go:embed kernels/sweep_90.cubin
	sweep90 []byte
)

// image returns the kernels for a GPU, as PTX if that is wanted. Those finished ahead load at once, and are faster than what drivers of CUDA 13 make of the
// PTX, by up to 7%; see docs/performance.md.
func image(d *driver.Device, ptx bool) []byte {
	if !ptx && d.Major == 9 && d.Minor == 0 {
		return sweep90
	}
	return sweepPTX
}

// pass is the argument of every sweep kernel, laid out as struct Pass in kernels/pass.cuh. Row numbers are global.
type pass struct {
	now, next         driver.DevicePtr // the first row held
	sums              driver.DevicePtr // sumWords words a sweep
	bias              [pieces]float64  // the accumulators of a lane begin here, see sums.go
	pitch, nx         int32            // in values
	rowLo, rowHi      int32            // rows held
	outLo, outHi      int32            // rows to compute
	countLo, countHi  int32            // of them, those whose squares count
	fixTop, fixBottom int32            // fixed rows; nowhere and -nowhere if there are none
	tileRows, sweeps  int32
	sides             [2]passSide // above and below
	awaited, posted   uint32
	depth             int32 // rows to hand on
	seam, edge, _     int32 // see kernels/shares.cuh
}

// passSide is struct Side in kernels/pass.cuh.
type passSide struct{ came, to, theirs, rows driver.DevicePtr }

// nowhere is a row far above all others.
const nowhere = -1 << 29

var _ [0]struct{} = [unsafe.Sizeof(pass{}) - 184]struct{}{} // the size of struct Pass

// geometry is how a kernel divides a pass among blocks. Either blocks do tile after tile, or each has several pipelines of warps that do equal
// shares.
type geometry struct {
	threads int // a block or pipeline
	columns int // that a block or pipeline writes
	strides int // if not 0, the rows of a tile, of which as many are under way as the device holds

	shared     int // bytes a pipeline
	pipes      int // most pipelines a block
	seam, edge int // by how much strips count as longer than they are, see kernels/shares.cuh
	fill       int // rows that a share costs besides its own: overlap, and filling the pipeline
}

// shape is a kernel in kernels/: its name, the most sweeps it does in a pass, and its geometry for a number of sweeps.
type shape struct {
	name     string
	most     int
	geometry func(sweeps int) geometry
}

// once describes sweep_once.cu.
func once(suffix string) shape {
	return shape{name: "once_" + suffix, most: 1, geometry: func(int) geometry {
		const threads, columns, rows = 128, 4, 2 * solver.GroupRows
		return geometry{threads: threads, columns: threads * columns, strides: rows}
	}}
}

// deep describes sweep_deep.cu for values of so many bytes, with so many columns a lane, sweeps a warp, rows between two barriers, warps a pipeline and
// warps a block; edge is that of geometry.
func deep(name string, size, columns, levels, step, mostWarps, blockWarps, edge int) shape {
	return shape{name: name, most: levels * mostWarps, geometry: func(sweeps int) geometry {
		const barriers = 15                     // that a block has, but for the one of __syncthreads
		slot := 32 * columns * size             // a row in shared memory
		warps := (sweeps + levels - 1) / levels // of a pipeline
		stale := (sweeps + columns - 1) / columns
		pipes := blockWarps / warps
		if warps > 1 {
			pipes = min(pipes, barriers/(warps/2))
		}
		return geometry{
			threads: 32 * warps,
			columns: (32 - 2*stale) * columns, // those of the outer lanes are not right in the end
			shared:  (solver.GroupRows+2*step*(warps-1))*slot + levels*warps*sumBytes,
			pipes:   pipes,
			seam:    (2*sweeps + 6*solver.GroupRows) / solver.GroupRows,
			edge:    edge,
			fill:    2*sweeps + (levels+step)*warps,
		}
	}}
}

// shapes returns the kernels for a type of field, that for the fewest sweeps first.
func shapes(t solver.DType) []shape {
	if t == solver.Float64 {
		return []shape{once("f64"), deep("sweep_f64", 8, 4, 2, 2, 4, 20, 6), deep("deep_f64", 8, 4, 4, 4, 4, 12, 6)}
	}
	return []shape{once("f32"), deep("sweep_f32", 4, 8, 2, 2, 8, 24, 4)}
}

// MaxSweeps returns the most sweeps in a block of fields of a type.
func MaxSweeps(t solver.DType) int {
	s := shapes(t)
	return s[len(s)-1].most
}

// PreferredDepth returns the number of sweeps in a pass, and so of rows in a halo, that is fast for a mesh whose lowest
// stripe has minRows rows.
func PreferredDepth(m solver.Mesh, minRows int) int {
	depth := 16
	if m.DType == solver.Float64 {
		depth = 12 // of the columns of a strip, 16 sweeps would make a quarter stale
	}
	return max(1, min(depth, minRows))
}

// kernel is a loaded kernel.
type kernel struct {
	shape
	f      *driver.Function
	sms    int
	shared int // bytes that a block may have
	arg    *pass
	args   *driver.Args
	held   int // of a kernel with strides: blocks that a multiprocessor holds at once
}

func loadKernel(m *driver.Module, dev *driver.Device, s shape) (*kernel, error) {
	k := &kernel{shape: s, sms: dev.SMs, shared: dev.SharedBytes, arg: new(pass)}
	var err error
	if k.f, err = m.Function(s.name); err != nil {
		return nil, err
	}
	if g := s.geometry(s.most); g.strides > 0 {
		k.held, err = k.f.BlocksPerSM(g.threads, 0)
	} else {
		err = k.f.SetDynamicShared(k.shared)
	}
	if err != nil {
		return nil, err
	}
	k.args, err = k.f.Args(k.arg)
	return k, err
}

// launch puts a pass into the stream. p says everything but how it is divided.
func (k *kernel) launch(s *driver.Stream, p pass) error {
	g := k.geometry(int(p.sweeps))
	strips := (int(p.nx) + g.columns - 1) / g.columns
	groups := (int(p.outHi)+solver.GroupRows-1)/solver.GroupRows - int(p.outLo)/solver.GroupRows
	if g.strides > 0 {
		p.tileRows = int32(g.strides)
		tiles := strips * ((groups*solver.GroupRows + g.strides - 1) / g.strides)
		*k.arg = p
		return k.f.Launch(s, driver.Dim{X: min(k.held*k.sms, tiles)}, driver.Dim{X: g.threads}, 0, k.args)
	}
	g.pipes = min(g.pipes, k.shared/g.shared)
	if g.pipes == 0 {
		return fmt.Errorf("kernel %s: %d sweeps need %d bytes of shared memory, a block has %d", k.name, p.sweeps, g.shared, k.shared)
	}
	pipes, blocks := divide(strips, groups, k.sms, g)
	p.seam, p.edge = int32(g.seam), int32(g.edge)
	*k.arg = p
	return k.f.Launch(s, driver.Dim{X: blocks}, driver.Dim{X: pipes * g.threads}, pipes*g.shared, k.args)
}

// positions returns the length of the line that blocks share, see kernels/shares.cuh.
func (g geometry) positions(strips, groups int) int {
	return strips*(groups+g.seam) + min(strips, 2)*(groups*g.edge/8)
}

// divide chooses the pipelines a block, and the blocks, for so many strips and groups of rows. More pipelines have smaller shares, but each share
// costs its overlap with the next, and pipelines slow each other down. There is a block for each multiprocessor, unless shares would be
// empty. The constants were fitted to an H200; see docs/performance.md.
func divide(strips, groups, sms int, g geometry) (pipes, blocks int) {
	positions := g.positions(strips, groups)
	best := math.Inf(1)
	for n := 1; n <= g.pipes; n++ {
		full := float64(n) / float64(g.pipes)
		rows := float64(positions*solver.GroupRows) / float64(sms*n)
		// What a row and a row of filling cost, relative to a row on a full multiprocessor.
		row, fill := max(0.35, 1-1.09*(1-full)*(1-full)), 0.6+0.34*full*full*full
		if cost := row*rows + fill*float64(g.fill); cost < best {
			best, pipes = cost, n
		}
	}
	return pipes, min(sms, (positions+pipes-1)/pipes)
}
