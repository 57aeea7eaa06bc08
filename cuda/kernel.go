package cuda

import (
	"fmt"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// pass is the argument of every sweep kernel, with the names of struct Pass in kernels/pass.cuh. Row numbers are
// global.
type pass struct {
	now, next         driver.DevicePtr // the first row held
	sums              driver.DevicePtr // sumWords words for each sweep
	bias              [limbs]float64   // initial values of the limbs of a sum, see sums.go
	pitch, nx         int32            // in values
	rowLo, rowHi      int32            // rows held
	outLo, outHi      int32            // rows to compute
	countLo, countHi  int32            // rows whose squares count
	fixTop, fixBottom int32            // fixed rows; nowhere and -nowhere if there are none
	sweeps            int32
	depth             int32 // rows to hand on
	awaited, posted   uint32
	sides             [2]passSide // above and below
	cut               cut
	_                 uint32
}

// cut tells the kernel how a pass is divided among blocks: struct Cut. Each kind of kernel reads its own fields.
type cut struct {
	tileRows             int32
	seam, edge           int32
	innerRows, outerRows int32
}

// passSide is struct Side in kernels/pass.cuh.
type passSide struct{ came, to, theirs, rows driver.DevicePtr }

// warpSize is the number of threads in a warp.
const warpSize = 32

// nowhere is a row far above all others.
const nowhere = -1 << 29

// capacity holds the properties of a GPU and a kernel on which a division depends.
type capacity struct {
	sms    int // multiprocessors
	shared int // bytes of dynamic shared memory that a block may have
	held   int // blocks without dynamic shared memory that a multiprocessor holds at once
}

// division is the division of a pass among blocks.
type division struct {
	blocks, threads int // number of blocks, and of threads in a block
	shared          int // bytes of dynamic shared memory of a block
	cut             cut
}

// shape describes a kernel in kernels/: its name, the largest numbers of threads in a block and of sweeps in a pass,
// and how it divides a pass. divide reports false for a pass that the kernel cannot do.
type shape struct {
	name                  string
	maxThreads, maxSweeps int
	terms                 bool // it takes a termsPass
	bare                  bool // it computes the norm of the last sweep alone, or none; see solver.Layout.NormsOf
	divide                func(c capacity, p *pass) (division, bool)
}

// The shapes of the kernels, as in kernels/shapes.cuh. The edges were fitted to an H200.
var (
	sweepF32 = deepShape{size: 4, columns: 8, levels: 2, step: 2, warps: 24, pipeWarps: 8, edge: 4}
	sweepF64 = deepShape{size: 8, columns: 4, levels: 2, step: 2, warps: 20, pipeWarps: 4, edge: 6}
	deepF64  = deepShape{size: 8, columns: 4, levels: 4, step: 4, warps: 12, pipeWarps: 4, edge: 6}

	bareF32 = deepShape{size: 4, columns: 8, levels: 2, step: 2, warps: 24, pipeWarps: 8, edge: 4, whole: true}
	bareF64 = deepShape{size: 8, columns: 4, levels: 4, step: 4, warps: 16, pipeWarps: 4, edge: 6, whole: true}

	fixedF32  = deepShape{size: 4, columns: 8, levels: 2, step: 2, warps: 24, pipeWarps: 8, edge: 4}
	fixedF64  = deepShape{size: 8, columns: 4, levels: 4, step: 4, warps: 12, pipeWarps: 4, edge: 6}
	sourceF32 = deepShape{size: 4, columns: 8, levels: 2, step: 2, warps: 16, pipeWarps: 8, edge: 4, values: 1}
	sourceF64 = deepShape{size: 8, columns: 4, levels: 4, step: 4, warps: 12, pipeWarps: 4, edge: 6, values: 1}

	weightedF32 = deepShape{size: 4, columns: 4, levels: 4, step: 2, warps: 8, pipeWarps: 4, edge: 4, values: 5}
	weightedF64 = deepShape{size: 8, columns: 4, levels: 2, step: 1, warps: 8, pipeWarps: 8, edge: 6, values: 5}
)

// shapesFor returns the kernels for a layout. The first that can do a pass is the fastest.
func shapesFor(l solver.Layout) []shape {
	if plain(l) {
		return shapes(l.Mesh.DType)
	}
	kind, deeps := "fixed", map[solver.DType]deepShape{solver.Float32: fixedF32, solver.Float64: fixedF64}
	switch {
	case l.Operator.Weighted:
		kind, deeps = "weighted", map[solver.DType]deepShape{solver.Float32: weightedF32, solver.Float64: weightedF64}
	case !l.Operator.Plain():
		kind, deeps = "source", map[solver.DType]deepShape{solver.Float32: sourceF32, solver.Float64: sourceF64}
	}
	suffix := fmt.Sprintf("%s_f%d", kind, 8*l.Mesh.DType.Size())
	both := []shape{once(suffix), deep("sweep_"+suffix, deeps[l.Mesh.DType])}
	for i := range both {
		both[i].terms = true
	}
	return both
}

// shapes returns the kernels without terms for a type of field. The first that can do a pass is the fastest.
func shapes(t solver.DType) []shape {
	if t == solver.Float64 {
		return []shape{
			once("f64"), held("held8_f64", 8, heldFloat64, 0), bare("bare_f64", bareF64),
			deep("sweep_f64", sweepF64), deep("deep_f64", deepF64),
		}
	}
	return []shape{
		once("f32"), held("held24_f32", 4, heldFloat32, 0), held("held16_f32", 4, heldFloat32, 1),
		bare("bare_f32", bareF32), deep("sweep_f32", sweepF32),
	}
}

// MaxSweeps returns the largest number of sweeps in a pass on a mesh. Periodic columns are copied between sweeps, so
// their passes have one sweep.
func MaxSweeps(m solver.Mesh) int {
	if m.PeriodicColumns() {
		return 1
	}
	s := shapes(m.DType)
	return s[len(s)-1].maxSweeps
}

// PreferredDepth returns a fast number of sweeps in a pass, and so of rows in a halo, for a mesh whose smallest stripe
// has minRows rows. From one norm to the next there are normEvery sweeps.
func PreferredDepth(m solver.Mesh, o solver.Operator, minRows, normEvery int) int {
	const small = 1 << 20 // points that an H200 holds in registers for 16 sweeps
	depth := 16
	if m.DType == solver.Float64 && m.NX*minRows > small && normEvery < 16 && !o.Weighted {
		depth = 12 // 16 sweeps would make a quarter of a strip's columns stale
	}
	return max(1, min(depth, minRows, MaxSweeps(m)))
}

// kernel is a loaded kernel.
type kernel struct {
	shape
	f        *driver.Function
	capacity capacity
	arg      *termsPass // kernels without terms take only its pass
	args     *driver.Args
	plans    map[passShape]passPlan // of passes so far: making one takes microseconds, and a run has few
}

// passShape holds the properties of a pass on which its division depends.
type passShape struct {
	nx, sweeps                     int32
	outLo, outHi, countLo, countHi int32
}

// passPlan is a kernel's division of a pass. ok is false if the kernel cannot do the pass.
type passPlan struct {
	division
	ok bool
}

func loadKernel(m *driver.Module, dev *driver.Device, s shape, t terms) (*kernel, error) {
	k := &kernel{shape: s, capacity: capacity{sms: dev.SMs, shared: dev.SharedBytes},
		arg: &termsPass{terms: t}, plans: map[passShape]passPlan{}}
	var err error
	if k.f, err = m.Function(s.name); err != nil {
		return nil, err
	}
	if k.capacity.held, err = k.f.BlocksPerSM(s.maxThreads, 0); err != nil {
		return nil, err
	}
	if s.maxSweeps > 1 {
		if err = k.f.SetDynamicShared(k.capacity.shared); err != nil {
			return nil, err
		}
	}
	if s.terms {
		k.args, err = k.f.Args(k.arg)
	} else {
		k.args, err = k.f.Args(&k.arg.pass)
	}
	return k, err
}

// launch puts a pass into the stream and returns true, unless the kernel cannot do it. p is complete except for cut.
// norms says which of its sweeps have a norm.
func (k *kernel) launch(s *driver.Stream, p pass, norms solver.NormsOf) (bool, error) {
	if int(p.sweeps) > k.maxSweeps || k.bare && norms == solver.SomeNorms {
		return false, nil
	}
	if k.bare && norms == solver.NoNorms {
		p.countHi = p.countLo
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
	k.arg.pass = p
	return true, k.f.Launch(s, driver.Dim{X: plan.blocks}, driver.Dim{X: plan.threads}, plan.shared, k.args)
}

// groups returns the number of row groups that a pass writes to.
func (p *pass) groups() int {
	top := int(p.outLo) &^ (solver.GroupRows - 1)
	return (int(p.outHi) - top + solver.GroupRows - 1) / solver.GroupRows
}

const (
	onceThreads = 128 // in a block
	onceColumns = 4   // of a lane
)

// once describes a kernel of sweep_once.cu. There are as many blocks as the device holds at once, and each block does
// one tile after another.
func once(suffix string) shape {
	divide := func(c capacity, p *pass) (division, bool) {
		const columns, rows = onceColumns * onceThreads, 2 * solver.GroupRows
		tiles := (int(p.nx) + columns - 1) / columns * ((p.groups()*solver.GroupRows + rows - 1) / rows)
		return division{blocks: min(c.held*c.sms, tiles), threads: onceThreads, cut: cut{tileRows: rows}}, true
	}
	return shape{name: "once_" + suffix, maxThreads: onceThreads, maxSweeps: 1, divide: divide}
}

// heldWarps describes the warps of a kernel in sweep_held.cu: the rows of a warp, the largest number of warps in a
// block, and the cost of a sweep relative to the other kernels for the type, which is a fixed part and a part for each
// warp of a scheduler. The costs were fitted to an H200; see docs/notebook/gpu-registers.md.
type heldWarps struct {
	rows, maxWarps int
	fixed, one     float64
}

var (
	heldFloat32 = []heldWarps{
		{rows: 24, maxWarps: 16, fixed: 600, one: 735},
		{rows: 16, maxWarps: 20, fixed: 330, one: 510},
	}
	heldFloat64 = []heldWarps{{rows: 8, maxWarps: 16, fixed: 200, one: 500}}
)

const (
	heldSchedulers = 4    // of a multiprocessor
	heldOuter      = 1.17 // cost of a tile with fixed columns, relative to other tiles
)

// held describes the kernel of sweep_held.cu for kinds[kind] and values of the given size in bytes. It does a pass if
// all its tiles run at once and no other of the kinds is faster.
func held(name string, size int, kinds []heldWarps, kind int) shape {
	divide := func(c capacity, p *pass) (division, bool) {
		if p.sweeps < 2 {
			return division{}, false
		}
		best, chosen := tiling{cost: math.Inf(1)}, -1
		for i, w := range kinds {
			if t := w.tile(size, c.sms, p); t.cost < best.cost && t.division.shared <= c.shared {
				best, chosen = t, i
			}
		}
		best.cut = cut{innerRows: int32(best.inner), outerRows: int32(best.outer)}
		return best.division, chosen == kind
	}
	return shape{name: name, maxThreads: warpSize * kinds[kind].maxWarps, maxSweeps: 16, divide: divide}
}

// tiling is a division of a mesh into tiles, at most one for each multiprocessor.
type tiling struct {
	division
	inner, outer int     // rows of a tile, without its overlap, in inner and outer columns of tiles
	cost         float64 // cost of a sweep; infinite if the mesh does not fit
}

// tile divides a pass among blocks of such warps. The warps of a scheduler take turns, so a tile costs as much as its
// busiest scheduler. Of tilings with equal cost, it returns the one with the fewest rows in a tile.
func (w heldWarps) tile(size, sms int, p *pass) tiling {
	const columns = solver.GroupCols // of a lane
	sweeps, groups := int(p.sweeps), p.groups()
	step := (warpSize - 2*((sweeps+columns-1)/columns)) * columns
	across := 1 + (max(int(p.nx)-warpSize*columns, 0)+step-1)/step
	outers := min(across, 2)
	overlap := (sweeps+solver.GroupRows-1)&^(solver.GroupRows-1) + sweeps
	height := func(tiles int) int { return (groups + tiles - 1) / tiles * solver.GroupRows }
	warps := func(rows int) int { return (rows + overlap + w.rows - 1) / w.rows }
	cost := func(rows int) float64 {
		if warps(rows) > w.maxWarps {
			return math.Inf(1)
		}
		return w.fixed + w.one*float64((warps(rows)+heldSchedulers-1)/heldSchedulers) + float64(warps(rows))
	}
	best := tiling{cost: math.Inf(1)}
	for inner := 1; inner <= groups && (across-outers)*inner+outers <= sms; inner++ {
		outer := min((sms-(across-outers)*inner)/outers, groups)
		t := tiling{inner: height(inner), outer: height(outer)}
		if across == outers {
			t.inner = t.outer // there are no inner columns
		}
		if t.cost = max(cost(t.inner), heldOuter*cost(t.outer)); t.cost < best.cost {
			best = t
		}
		if across == outers {
			break
		}
	}
	if math.IsInf(best.cost, 1) {
		return best
	}
	count := func(rows int) int { return (groups*solver.GroupRows + rows - 1) / rows }
	n := warps(max(best.inner, best.outer))
	best.division = division{
		blocks:  outers*count(best.outer) + (across-outers)*count(best.inner),
		threads: warpSize * n,
		shared:  (2*2*(n+2)*columns+sweeps*n*w.rows/solver.GroupRows)*warpSize*size + n*sumBytes,
	}
	return best
}
