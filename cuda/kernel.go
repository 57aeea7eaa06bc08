package cuda

import (
	_ "embed"
	"fmt"
	"math"
	"unsafe"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

//go:embed kernels/sweep.ptx
var sweepPTX []byte

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
}

// nowhere is a row far above all others.
const nowhere = -1 << 29

var _ [0]struct{} = [unsafe.Sizeof(pass{}) - 96]struct{}{} // the size of struct Pass

// geometry is how a kernel divides a pass among blocks.
type geometry struct {
	threads int // a block
	shared  int // bytes a block, dynamic
	columns int // that a block writes
	highest int // most rows of a tile
	waste   int // rows that a tile costs besides its own: overlap, and filling a pipeline
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
		const threads, columns, ahead = 128, 4, 2
		return geometry{threads: threads, columns: threads * columns, highest: 32, waste: 2 + ahead}
	}}
}

// deep describes sweep_deep.cu with so many columns a lane, sweeps a warp and rows between two barriers.
func deep(name string, size, columns, levels, step, mostWarps int) shape {
	return shape{name: name, most: levels * mostWarps, geometry: func(sweeps int) geometry {
		parts := columns * size / 16 // of a lane's columns, for banks of shared memory
		slot := parts * 32 * 16      // a row in shared memory
		if parts > 1 {
			slot += parts * 64
		}
		sums := levels * 32 * pieces * 8        // a warp's
		warps := (sweeps + levels - 1) / levels // of a block
		stale := (sweeps + columns - 1) / columns
		return geometry{
			threads: 32 * warps,
			shared:  (solver.GroupRows+2*step*(warps-1))*slot + warps*sums,
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
	return []shape{once("f32"), deep("sweep_f32", 4, 4, 4, 4, 4)}
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
	depth := 8
	if m.NX*minRows <= small || m.DType == solver.Float64 && minRows >= 8192 {
		depth = 16 // fewer passes; their longer overlaps do not count
	}
	return max(1, min(depth, minRows))
}

// kernel is a loaded kernel.
type kernel struct {
	shape
	f    *driver.Function
	sms  int
	arg  *pass
	args *driver.Args
	held map[int]int // blocks that the device holds at once, by sweeps
}

func loadKernel(m *driver.Module, dev *driver.Device, s shape) (*kernel, error) {
	f, err := m.Function(s.name)
	if err != nil {
		return nil, err
	}
	if err := f.SetDynamicShared(s.geometry(s.most).shared); err != nil {
		return nil, err
	}
	k := &kernel{shape: s, f: f, sms: dev.SMs, arg: new(pass), held: map[int]int{}}
	k.args, err = f.Args(k.arg)
	return k, err
}

// launch puts a pass into the stream. p says everything but the tiles.
func (k *kernel) launch(s *driver.Stream, p pass) error {
	g := k.geometry(int(p.sweeps))
	held, ok := k.held[int(p.sweeps)]
	if !ok {
		perSM, err := k.f.BlocksPerSM(g.threads, g.shared)
		if err != nil {
			return err
		}
		if perSM == 0 {
			return fmt.Errorf("kernel %s: a block for %d sweeps does not fit on this GPU", k.name, p.sweeps)
		}
		held = perSM * k.sms
		k.held[int(p.sweeps)] = held
	}
	strips := (int(p.nx) + g.columns - 1) / g.columns
	rows := int(p.outHi) - int(p.outLo)&^(solver.GroupRows-1)
	tile := tileRows(rows, strips, held, g)
	grid := driver.Dim{X: strips, Y: (rows + tile - 1) / tile}
	p.tileRows = int32(tile)
	*k.arg = p
	return k.f.Launch(s, grid, driver.Dim{X: g.threads}, g.shared, k.args)
}

// alone is how much of the time of a row in a full multiprocessor a block takes that is alone there.
const alone = 0.6

// tileRows chooses the height of the tiles of a region of so many rows and strips, of which the device holds so many at once.
// Low tiles waste work at their ends, high ones leave multiprocessors idle.
func tileRows(rows, strips, held int, g geometry) int {
	best, bestCost := solver.GroupRows, math.Inf(1)
	for h := solver.GroupRows; h <= g.highest; h += solver.GroupRows {
		waves := float64(strips*((rows+h-1)/h)) / float64(held)
		if waves > 1 {
			waves += 0.5 // blocks start as others end: on average half a wave is lost
		}
		if cost := max(alone, waves) * float64(min(h, rows)+g.waste); cost < bestCost {
			best, bestCost = h, cost
		}
		if h >= rows {
			break
		}
	}
	return best
}
