package cuda

import (
	_ "embed"

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

// image returns the kernels for a GPU, as PTX if that is wanted. Those finished ahead load at once, and are faster than
// what drivers of CUDA 13 make of the PTX, by up to 7%; see docs/notebook/gpu-deep-kernel.md.
func image(d *driver.Device, ptx bool) []byte {
	if !ptx && d.Major == 9 && d.Minor == 0 {
		return sweep90
	}
	return sweepPTX
}

// pass is the argument of every sweep kernel: struct Pass in kernels/pass.cuh, with its names. Row numbers are global.
type pass struct {
	now, next         driver.DevicePtr // the first row held
	sums              driver.DevicePtr // sumWords words a sweep
	bias              [limbs]float64   // initial values of the limbs of a sum, see sums.go
	pitch, nx         int32            // in values
	rowLo, rowHi      int32            // rows held
	outLo, outHi      int32            // rows to compute
	countLo, countHi  int32            // of them, those whose squares count
	fixTop, fixBottom int32            // fixed rows; nowhere and -nowhere if there are none
	sweeps            int32
	depth             int32 // rows to hand on
	awaited, posted   uint32
	sides             [2]passSide // above and below
	cut               cut
	_                 uint32
}

// cut is how a pass is divided among blocks: struct Cut. Each kind of kernel reads its own fields.
type cut struct {
	tileRows             int32
	seam, edge           int32
	innerRows, outerRows int32
}

// passSide is struct Side in kernels/pass.cuh.
type passSide struct{ came, to, theirs, rows driver.DevicePtr }

// warpSize is the threads of a warp.
const warpSize = 32

// nowhere is a row far above all others.
const nowhere = -1 << 29

// capacity is what a division depends on, of a GPU and for a kernel.
type capacity struct {
	sms    int // multiprocessors
	shared int // bytes of shared memory that a block may have
	held   int // blocks without shared memory of their own that a multiprocessor holds at once
}

// division is how a kernel divides a pass among blocks, and what it must know of that.
type division struct {
	blocks, threads int // threads a block
	shared          int // bytes a block
	cut             cut
}

// shape is a kernel in kernels/: its name, the most threads of a block and sweeps of a pass, and how it divides a pass.
// divide reports false for a pass that the kernel cannot do.
type shape struct {
	name          string
	threads, most int
	divide        func(c capacity, p *pass) (division, bool)
}

// The shapes of the kernels, as in kernels/shapes.cuh. The edges were fitted to an H200.
var (
	sweepF32 = deepShape{size: 4, columns: 8, levels: 2, step: 2, warps: 24, pipeWarps: 8, edge: 4}
	sweepF64 = deepShape{size: 8, columns: 4, levels: 2, step: 2, warps: 20, pipeWarps: 4, edge: 6}
	deepF64  = deepShape{size: 8, columns: 4, levels: 4, step: 4, warps: 12, pipeWarps: 4, edge: 6}
)

// shapes returns the kernels for a type of field. The first that can do a pass is the fastest.
func shapes(t solver.DType) []shape {
	if t == solver.Float64 {
		return []shape{
			once("f64"), held("held8_f64", 8, heldFloat64, 0),
			deep("sweep_f64", sweepF64), deep("deep_f64", deepF64),
		}
	}
	return []shape{
		once("f32"), held("held24_f32", 4, heldFloat32, 0), held("held16_f32", 4, heldFloat32, 1),
		deep("sweep_f32", sweepF32),
	}
}

// MaxSweeps returns the most sweeps in a pass over fields of a type.
func MaxSweeps(t solver.DType) int {
	s := shapes(t)
	return s[len(s)-1].most
}

// PreferredDepth returns the number of sweeps in a pass, and so of rows in a halo, that is fast for a mesh whose lowest
// stripe has minRows rows.
func PreferredDepth(m solver.Mesh, minRows int) int {
	const small = 1 << 20 // points that an H200 keeps in registers for 16 sweeps
	depth := 16
	if m.DType == solver.Float64 && m.NX*minRows > small {
		depth = 12 // of the columns of a strip, 16 sweeps would make a quarter stale
	}
	return max(1, min(depth, minRows))
}

// kernel is a loaded kernel.
type kernel struct {
	shape
	f        *driver.Function
	capacity capacity
	arg      *pass
	args     *driver.Args
	plans    map[passShape]passPlan // of passes that there were: finding one takes microseconds, and a run has few
}

// passShape is what the division of a pass depends on.
type passShape struct {
	nx, sweeps                     int32
	outLo, outHi, countLo, countHi int32
}

// passPlan is how a kernel divides a pass, if it can do it.
type passPlan struct {
	division
	ok bool
}

func loadKernel(m *driver.Module, dev *driver.Device, s shape) (*kernel, error) {
	k := &kernel{shape: s, capacity: capacity{sms: dev.SMs, shared: dev.SharedBytes}, arg: new(pass),
		plans: map[passShape]passPlan{}}
	var err error
	if k.f, err = m.Function(s.name); err != nil {
		return nil, err
	}
	if k.capacity.held, err = k.f.BlocksPerSM(s.threads, 0); err != nil {
		return nil, err
	}
	if s.most > 1 {
		if err = k.f.SetDynamicShared(k.capacity.shared); err != nil {
			return nil, err
		}
	}
	k.args, err = k.f.Args(k.arg)
	return k, err
}

// launch puts a pass into the stream, if the kernel can do it. p says everything but how it is divided.
func (k *kernel) launch(s *driver.Stream, p pass) (bool, error) {
	if int(p.sweeps) > k.most {
		return false, nil
	}
	shape := passShape{p.nx, p.sweeps, p.outLo, p.outHi, p.countLo, p.countHi}
	plan, known := k.plans[shape]
	if !known {
		d, ok := k.divide(k.capacity, &p)
		plan = passPlan{d, ok}
		k.plans[shape] = plan
	}
	if !plan.ok {
		return false, nil
	}
	p.cut = plan.cut
	*k.arg = p
	return true, k.f.Launch(s, driver.Dim{X: plan.blocks}, driver.Dim{X: plan.threads}, plan.shared, k.args)
}

// groups returns how many groups of rows a pass writes to.
func (p *pass) groups() int {
	top := int(p.outLo) &^ (solver.GroupRows - 1)
	return (int(p.outHi) - top + solver.GroupRows - 1) / solver.GroupRows
}
