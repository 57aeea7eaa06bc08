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
	depth, _          int32
}

// passSide is struct Side in kernels/pass.cuh.
type passSide struct{ came, to, theirs, tiles driver.DevicePtr }

// nowhere is a row far above all others.
const nowhere = -1 << 29

var _ [0]struct{} = [unsafe.Sizeof(pass{}) - 176]struct{}{} // the size of struct Pass

// geometry is how a kernel divides a pass among blocks.
type geometry struct {
	threads int // a block
	shared  int // bytes a block, dynamic
	low     int // more of them in the kernel for low tiles
	columns int // that a block writes
	highest int // most rows of a tile
	strides int // if not 0, the rows of a tile; each block does tile after tile, and as many run as the device holds
	waste   int // rows that a tile costs besides its own: overlap, and filling a pipeline
}

// shape is a kernel in kernels/: its name, the most sweeps it does in a pass, and its geometry for a number of sweeps.
type shape struct {
	name     string
	short    string // if not "", the kernel to take for tiles of at most shortTile rows
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

// deep describes sweep_deep.cu with so many columns a lane, sweeps a warp and rows between two barriers.
func deep(name string, size, columns, levels, step, mostWarps int) shape {
	return shape{name: name, most: levels * mostWarps, geometry: func(sweeps int) geometry {
		slot := 32 * columns * size             // a row in shared memory
		warps := (sweeps + levels - 1) / levels // of a block
		stale := (sweeps + columns - 1) / columns
		return geometry{
			threads: 32 * warps,
			shared:  (solver.GroupRows+2*step*(warps-1))*slot + levels*warps*sumBytes,
			low:     levels * warps * 32 * pieces * 8,
			columns: (32 - 2*stale) * columns, // those of the outer lanes are not right in the end
			highest: 1024,
			waste:   2*sweeps + (levels+step)*warps + 2*solver.GroupRows,
		}
	}}
}

// shapes returns the kernels for a type of field, that for the fewest sweeps first.
func shapes(t solver.DType) []shape {
	if t == solver.Float64 {
		return []shape{once("f64"), deep("sweep_f64", 8, 4, 2, 2, 4), deep("deep_f64", 8, 4, 4, 4, 4)}
	}
	sweep := deep("sweep_f32", 4, 8, 2, 2, 8)
	sweep.short = "small_f32"
	return []shape{once("f32"), sweep}
}

// MaxSweeps returns the most sweeps in a block of fields of a type.
func MaxSweeps(t solver.DType) int {
	s := shapes(t)
	return s[len(s)-1].most
}

// small is a number of points whose sweeps take about as long as what comes between two passes.
const small = 8 << 20

// PreferredDepth returns the number of sweeps in a pass, and so of rows in a halo, that is fast for a mesh whose lowest
// stripe has minRows rows.
func PreferredDepth(m solver.Mesh, minRows int) int {
	depth := 16
	if m.DType == solver.Float64 && m.NX*minRows > small && minRows < 8192 {
		depth = 8 // the longer overlap of deep tiles costs more than it saves
	}
	return max(1, min(depth, minRows))
}

// kernel is a loaded kernel.
type kernel struct {
	shape
	f    *driver.Function
	low  *driver.Function // for low tiles; nil: the same
	sms  int
	arg  *pass
	args *driver.Args
	held map[int]int // blocks that a multiprocessor holds at once, by sweeps
}

func loadKernel(m *driver.Module, dev *driver.Device, s shape) (*kernel, error) {
	k := &kernel{shape: s, sms: dev.SMs, arg: new(pass), held: map[int]int{}}
	open := func(name string, shared int) (*driver.Function, error) {
		f, err := m.Function(name)
		if err != nil {
			return nil, err
		}
		return f, f.SetDynamicShared(shared)
	}
	var err error
	g := s.geometry(s.most)
	if k.f, err = open(s.name, g.shared); err != nil {
		return nil, err
	}
	if s.short != "" {
		if k.low, err = open(s.short, g.shared+g.low); err != nil {
			return nil, err
		}
	}
	k.args, err = k.f.Args(k.arg)
	return k, err
}

// shortTile is the height of tiles up to which the kernel with the shorter loop is faster: blocks then spend their time
// beginning and ending.
const shortTile = 128

// launch puts a pass into the stream. p says everything but the tiles.
func (k *kernel) launch(s *driver.Stream, p pass) error {
	g := k.geometry(int(p.sweeps))
	perSM, ok := k.held[int(p.sweeps)]
	if !ok {
		var err error
		if perSM, err = k.f.BlocksPerSM(g.threads, g.shared); err != nil {
			return err
		}
		if perSM == 0 {
			return fmt.Errorf("kernel %s: a block for %d sweeps does not fit on this GPU", k.name, p.sweeps)
		}
		k.held[int(p.sweeps)] = perSM
	}
	strips := (int(p.nx) + g.columns - 1) / g.columns
	rows := int(p.outHi) - int(p.outLo)&^(solver.GroupRows-1)
	tile, grid := g.strides, driver.Dim{}
	if g.strides > 0 {
		grid.X = min(perSM*k.sms, strips*((rows+tile-1)/tile))
	} else {
		tile = tileRows(rows, strips, k.sms, perSM, g)
		grid = driver.Dim{X: strips, Y: (rows + tile - 1) / tile}
	}
	p.tileRows = int32(tile)
	*k.arg = p
	if tile <= shortTile && k.low != nil {
		return k.low.Launch(s, grid, driver.Dim{X: g.threads}, g.shared+g.low, k.args)
	}
	return k.f.Launch(s, grid, driver.Dim{X: g.threads}, g.shared, k.args)
}

// tileRows chooses the height of the tiles of a region of so many rows and strips on so many multiprocessors, each of which
// holds so many blocks at once. Low tiles waste work at their ends; high ones leave multiprocessors idle, or one with more
// blocks than the others. The constants were fitted to an H200; see docs/performance.md.
func tileRows(rows, strips, sms, perSM int, g geometry) int {
	best, bestCost := solver.GroupRows, math.Inf(1)
	for h := solver.GroupRows; h <= g.highest; h += solver.GroupRows {
		blocks := strips * ((rows + h - 1) / h)
		var slow float64 // of a row, relative to that of a full multiprocessor
		if held := sms * perSM; blocks <= held {
			slow = 0.3 + 0.7*float64((blocks+sms-1)/sms)/float64(perSM)
		} else {
			// Most have to do as many blocks as the one with the most; in three waves and more, the differences even out.
			each := float64(blocks) / float64(sms)
			each += (math.Ceil(each) - each) * max(0, 1.5-each/float64(2*perSM))
			slow = each / float64(perSM)
		}
		if cost := slow * float64(min(h, rows)+g.waste); cost < bestCost {
			best, bestCost = h, cost
		}
		if h >= rows {
			break
		}
	}
	return best
}
