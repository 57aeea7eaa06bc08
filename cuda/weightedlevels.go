package cuda

import (
	"errors"
	"fmt"
	"math"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// weightedKernels are the names of the kernels.
var weightedKernels = []string{"weighted_assemble", "weighted_load", "weighted_coarsen_f64", "weighted_coarsen_f32",
	"weighted_scale_f32", "weighted_complete_f32", "weighted_transfer_f64",
	"weighted_transfer_f32", "weighted_down_f64", "weighted_down_f32",
	"weighted_restrict_f32", "weighted_up_f64", "weighted_up_f32", "weighted_down_rows_f32", "weighted_up_rows_f32",
	"weighted_products", "weighted_step"}

// weighted is what Levels of a weighted operator have besides.
type weighted struct {
	*Levels
	functions map[string]*driver.Function
	points    []*levelPoints // by level
	fixed     driver.DevicePtr
	// While the levels are set up: by level, the arrays from multigrid.Centre on; h of a level.
	wide   [][]field
	h      driver.DevicePtr
	pieces []driver.DevicePtr // all memory that goes after the set-up
	setUp  bool               // and is there

	coarse   []driver.DevicePtr // all memory that goes when aggregates come
	few      int                // the most unknowns of a level of aggregates that one block does
	streamed int                // the fewest points of a coarser level whose rows stream through blocks

	sets         *aggregates  // in the place of all levels but the finest; nil before Aggregate
	products     *productArg  // of conjugate gradients; nil without
	equationRows equationRows // that Aggregate's caller reads
}

// levelPoints is what a level has besides.
type levelPoints struct {
	centre, east, south, southEast, southWest field
	transfer                                  field // P' of the next level: nine arrays, one after the other
}

// arrays returns those that need memory. The coarsest level is solved directly.
func (p *levelPoints) arrays(level, last int) []*field {
	switch level {
	case 0:
		return []*field{&p.centre, &p.east, &p.south, &p.transfer}
	case last:
		return nil
	}
	return []*field{&p.centre, &p.east, &p.south, &p.southEast, &p.southWest, &p.transfer}
}

// newLevelPoints returns that of a level without memory.
func newLevelPoints(l, next *level) *levelPoints {
	p := &levelPoints{}
	for _, f := range []*field{&p.centre, &p.east, &p.south, &p.southEast, &p.southWest} {
		*f = l.u
	}
	if next != nil {
		p.transfer = field{rows: next.u.rows, pitch: next.u.pitch}
		p.transfer.rows.Hi += 8 * next.u.rows.Rows()
	}
	return p
}

// wideOf returns an array of float64 values of a level without memory.
func wideOf(l *level) field { return field{rows: l.u.rows, pitch: widePitch(l.Mesh)} }

// weightedBytes returns the bytes of GPU memory that the levels of a weighted operator take, those of their set-up
// included.
func weightedBytes(l multigrid.Layout) int64 {
	bytes := int64(sumBytes) + coarsestBytes(l)
	last := len(l.Plan.Levels) - 1
	h := int64(0)
	for i := range l.Plan.Levels {
		v := newLevel(l, i)
		for _, a := range v.arrays() {
			bytes += a.bytes() + slack
		}
		var next *level
		if i < last {
			next = newLevel(l, i+1)
		}
		points := newLevelPoints(v, next)
		for _, a := range points.arrays(i, last) {
			bytes += a.bytes() + slack
		}
		if i > 0 {
			wide := wideOf(v)
			bytes += wideArrays * (wide.bytes() + slack)
			h = max(h, wide.bytes())
		}
		if i == 0 && l.Fixed != nil {
			bytes += 4 * int64(v.fixedWords()*v.u.rows.Rows())
		}
	}
	return bytes + h + slack
}

// wideArrays is the number of arrays of a level from multigrid.Centre on.
const wideArrays = int64(multigrid.Scaling - multigrid.Centre + 1)

// openWeighted allocates the levels of a weighted operator and prepares their cycles.
func (v *Levels) openWeighted() error {
	w := &weighted{Levels: v, functions: map[string]*driver.Function{}, setUp: true, few: fewUnknowns,
		streamed: 1 << 21}
	v.weighted = w
	for _, name := range weightedKernels {
		f, err := v.dev.module.Function(name)
		if err != nil {
			return err
		}
		w.functions[name] = f
	}
	for name, bytes := range map[string]int{
		"weighted_products": weightedProductBytes, "weighted_coarsen_f64": setupBytes(0) + setupPointsBytes,
		"weighted_coarsen_f32": setupBytes(1) + setupPointsBytes, "weighted_transfer_f32": setupBytes(1),
		"weighted_down_f64": pipeBytes, "weighted_up_f64": pipeBytes, "weighted_down_rows_f32": nineBytes,
		"weighted_up_rows_f32": nineBytes,
	} {
		if err := w.functions[name].SetDynamicShared(bytes); err != nil {
			return err
		}
	}
	last := len(v.layout.Plan.Levels) - 1
	for i := range last + 1 {
		v.levels = append(v.levels, newLevel(v.layout, i))
	}
	for i, l := range v.levels {
		if err := w.allocate(i, l); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	v.dev.onClose(w.release)
	v.dev.onClose(func() error { return w.free(&w.coarse) })
	if err := w.allocateSetUp(); err != nil {
		return fmt.Errorf("to set up levels: %w", err)
	}
	if v.layout.Fixed != nil {
		u := uploads{dev: v.dev}
		if w.fixed = table(&u, v.levels[0].fixedBits(v.layout.Fixed)); u.err != nil {
			return fmt.Errorf("fixed points: %w", u.err)
		}
	}
	for i := range last {
		var err error
		if i == 0 {
			err = w.prepareFinest()
		} else {
			err = w.prepareCoarser(i)
		}
		if err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	var err error
	v.tail, err = v.openCoarsest()
	return err
}

// allocate allocates the arrays of a level that stay.
func (w *weighted) allocate(i int, l *level) error {
	alloc := w.dev.alloc
	if i > 0 {
		alloc = w.piece(&w.coarse)
	}
	if err := w.zero(l.arrays(), alloc); err != nil {
		return err
	}
	var next *level
	if i+1 < len(w.levels) {
		next = w.levels[i+1]
	}
	p := newLevelPoints(l, next)
	w.points = append(w.points, p)
	arrays := p.arrays(i, len(w.levels)-1)
	if i == 0 { // the transfers come last
		last := len(arrays) - 1
		return errors.Join(w.zero(arrays[:last], alloc), w.zero(arrays[last:], w.piece(&w.coarse)))
	}
	return w.zero(arrays, alloc)
}

// argOf returns the argument of kernels for a level.
func argOf[F float32 | float64](w *weighted, level int) weightedArg[F] {
	l, p := w.levels[level], w.points[level]
	a := weightedArg[F]{b: l.b.origin(), centre: p.centre.origin(), east: p.east.origin(), south: p.south.origin(),
		southEast: p.southEast.origin(), southWest: p.southWest.origin(), sums: w.counts,
		bias: biases(w.layout.Magnitude), scale: math.Ldexp(1, int(w.layout.Magnitude)), fine: newGrid(l),
		x: newHalving(l.HalveX), y: newHalving(l.HalveY)}
	if level == 0 {
		a.fixed, a.fixedPitch = w.fixed, int32(l.fixedWords())
	}
	if w.setUp {
		a.own = w.equations(level)
	}
	if level+1 == len(w.levels) {
		return a
	}
	next := w.levels[level+1]
	a.coarse, a.coarseB, a.coarseU = newGrid(next), next.b.origin(), next.u.origin()
	transfer := p.transfer
	a.transfer = nine{transfer.origin(), int64(next.u.rows.Rows()) * int64(next.u.pitch) / 4}
	if w.setUp {
		a.next = w.equations(level + 1)
	}
	return a
}

// grid is struct Grid in kernels/weighted_level.cuh.
type grid struct {
	pitch, widePitch, nx int32 // values
	rowLo, rowHi         int32
	lo, hi, top, bottom  int32
	turnX, turnY, copies int32
}

// newGrid returns the points of a level of a weighted operator.
func newGrid(l *level) grid {
	m, rows := l.Mesh, l.u.rows
	lo, hi := m.InteriorColumns()
	g := grid{pitch: int32(l.u.pitch / m.DType.Size()), widePitch: int32(widePitch(m) / 8), nx: int32(m.NX),
		rowLo: int32(rows.Lo), rowHi: int32(rows.Hi), lo: int32(lo), hi: int32(hi), top: int32(rows.Lo),
		bottom: int32(rows.Hi)}
	if m.PeriodicColumns() {
		g.turnX = int32(m.NX - 2)
	}
	in := m.Interior()
	switch whole := l.neighbour == [2]bool{}; {
	case !m.PeriodicRows():
		g.top, g.bottom = max(g.top, int32(in.Lo)), min(g.bottom, int32(in.Hi))
	case whole:
		g.top, g.bottom, g.copies = int32(in.Lo), int32(in.Hi), 1
		fallthrough
	default:
		g.turnY = int32(m.NY - 2)
	}
	return g
}

// widePitch is the pitch of an array of float64 values of a mesh.
func widePitch(m solver.Mesh) int {
	m.DType = solver.Float64
	return pitchOf(m)
}

// halving is struct Halving.
type halving struct{ fine, coarse, periodic int32 }

func newHalving(h multigrid.Halving) halving {
	v := halving{fine: int32(h.Fine), coarse: int32(h.Coarse)}
	if h.Periodic {
		v.periodic = 1
	}
	return v
}

// equations is struct Equations.
type equations struct{ c, e, s, se, sw, g, h driver.DevicePtr }

// nine is struct Nine.
type nine struct {
	first  driver.DevicePtr // where row 0 is or would be
	stride int64            // values
}

// weightedArg is struct WeightedArg.
type weightedArg[F float32 | float64] struct {
	from, to, b                               driver.DevicePtr
	centre, east, south, southEast, southWest driver.DevicePtr
	transfer                                  nine
	coarseB, coarseU                          driver.DevicePtr
	own, next                                 equations
	fixed, sums                               driver.DevicePtr
	bias                                      [limbs]float64
	scale                                     float64
	fine, coarse                              grid
	x, y                                      halving
	lo, hi, strips, fixedPitch                int32
	countLo, countHi                          int32
	coarseLo, coarseHi, blockRows             int32
	weights                                   [multigrid.SmootherSweeps]F
}

// assembly is struct Assembly in kernels/weighted_setup.cuh.
type assembly struct {
	level        weightedArg[float64]
	hx, hy, unit float64
}

// productArg is struct ProductArg in kernels/weighted_products.cuh.
type productArg struct {
	level               weightedArg[float64]
	u, x, p, sums       driver.DevicePtr
	unitShift, unitBits int32
	differences         int32 // not 0: with aggregates
	_                   int32
}

// The blocks of the kernels, as in kernels/weighted_level.cuh, weighted_setup.cuh, weighted_pipe.cuh,
// weighted_nine.cuh, weighted_tile.cuh and weighted_products.cuh.
const (
	pointThreads = 256
	pointColumns = 64
	pointRows    = pointThreads / pointColumns

	setupColumns     = 32
	setupRows        = pointThreads / setupColumns
	setupFinePoints  = (2*setupRows + 4) * (2*setupColumns + 6)
	setupPointsBytes = 9 * 8 * pointThreads

	pipeThreads  = 256
	pipeRows     = 8                     // of the long rings
	pipeShort    = 4                     // of the others
	pipeAhead    = 2                     // of them, rows under way from memory
	pipeMost     = 32 * solver.GroupRows // rows of a block
	pipeSideDown = 8
	pipeSideUp   = 4
	pipeWarps    = pipeThreads / warpSize
	pipeSlots    = 4                   // of transfers
	pipeTransfer = 8 * 4 * pipeThreads // of one row
	pipeBytes    = 8*((2*pipeRows+3*pipeShort)*pipeThreads+2*multigrid.SmootherSweeps*(pipeThreads+2)) +
		pipeSlots*pipeTransfer + 4*(2*pipeThreads+2*(pipeThreads+2)) +
		12*(pipeRows+pipeMost+2*pipeRows+pipeAhead) + pipeWarps*sumBytes
	pipeLead   = 16 // steps of a block before and after those of its rows
	pipeBlocks = 2

	nineTurn  = 12
	nineLines = pipeMost + pipeRows + 2*nineTurn + pipeAhead
	nineSlots = 3
	nineBytes = 4*pipeThreads*(5*nineTurn+2*pipeShort+2) + nineSlots*pipeTransfer +
		4*(2*multigrid.SmootherSweeps+2)*(pipeThreads+2) + 12*(nineTurn+nineLines)

	tileRows    = 32
	tileColumns = 64
	tileThreads = 256
	tileBytes   = 2*(tileRows+2)*(tileColumns+2)*4 + 12*(tileRows+2+tileColumns+2)
	tileStepX   = tileColumns - 2*multigrid.SmootherSweeps
	tileStepY   = tileRows - 2*multigrid.SmootherSweeps

	weightedProductThreads = 256
	weightedProductStep    = weightedProductThreads - 2*solver.GroupCols
	weightedProductBytes   = 7*4*weightedProductThreads*8 + weightedProductThreads*2*dotBins*8
)

// setupBytes returns the shared memory of a block with the stencils of a level: struct FineValues.
func setupBytes(level int) int {
	if level == 0 {
		return 4 * 8 * setupFinePoints
	}
	return 6 * 8 * setupFinePoints
}

// blocksOf returns the strips of columns of a level, and the blocks in all, if blocks of some columns and rows divide
// the given rows. Rows of blocks begin at those of a group.
func blocksOf(columns int, rows solver.Stripe, stepX, stepY int) (strips, blocks int) {
	strips = (columns + stepX - 1) / stepX
	first := solver.FloorDiv(rows.Lo, solver.GroupRows) * solver.GroupRows
	return strips, strips * ((rows.Hi - first + stepY - 1) / stepY)
}
