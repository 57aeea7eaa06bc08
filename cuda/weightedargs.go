package cuda

import (
	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

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
	weights                                   [multigrid.Sweeps]F
}

// productArg is struct ProductArg in kernels/weighted_products.cuh.
type productArg struct {
	level               weightedArg[float64]
	u, x, p, sums       driver.DevicePtr
	unitShift, unitBits int32
}

// The blocks of the kernels, as in kernels/weighted_level.cuh, weighted_setup.cuh, weighted_pipe.cuh,
// weighted_tile.cuh and weighted_products.cuh.
const (
	pointThreads = 256
	pointColumns = 64
	pointRows    = pointThreads / pointColumns

	setupColumns     = 32
	setupRows        = pointThreads / setupColumns
	setupFinePoints  = (2*setupRows + 3) * (2*setupColumns + 4)
	setupPointsBytes = 9 * 8 * pointThreads

	pipeThreads  = 256
	pipeRows     = 8                     // of the rings
	pipeAhead    = 2                     // of them, rows under way from memory
	pipeMost     = 32 * solver.GroupRows // rows of a block
	pipeSideDown = 8
	pipeSideUp   = 4
	pipeWarps    = pipeThreads / warpSize
	pipeBytes    = 8*(5*pipeRows*pipeThreads+2*multigrid.Sweeps*(pipeThreads+2)) + 2*4*(pipeThreads+2) +
		12*(pipeRows+pipeMost+2*pipeRows+pipeAhead) + pipeWarps*sumBytes
	pipeTurns  = 4 // of all multiprocessors, each with pipeBlocks blocks
	pipeBlocks = 2

	tileRows    = 32
	tileColumns = 64
	tileThreads = 256
	tileBytes   = 2*(tileRows+2)*(tileColumns+2)*4 + 12*(tileRows+2+tileColumns+2)
	tileStepX   = tileColumns - 2*multigrid.Sweeps
	tileStepY   = tileRows - 2*multigrid.Sweeps

	weightedProductThreads = 256
	weightedProductStep    = weightedProductThreads - 2*solver.GroupCols
	weightedProductBytes   = 7*4*weightedProductThreads*8 + weightedProductThreads*2*dotBins*8
)

// setupBytes returns the shared memory of a block with the stencils of a level: struct FineValues.
func setupBytes(level int) int {
	if level == 0 {
		return 3 * 8 * setupFinePoints
	}
	return 5 * 8 * setupFinePoints
}

// blocksOf returns the strips of columns of a level, and the blocks in all, if blocks of some columns and rows divide
// the given rows. Rows of blocks begin at those of a group.
func blocksOf(columns int, rows solver.Stripe, stepX, stepY int) (strips, blocks int) {
	strips = (columns + stepX - 1) / stepX
	first := solver.FloorDiv(rows.Lo, solver.GroupRows) * solver.GroupRows
	return strips, strips * ((rows.Hi - first + stepY - 1) / stepY)
}

// call is a kernel with its argument.
type call struct {
	f                       *driver.Function
	args                    *driver.Args
	blocks, threads, shared int
}

func (c call) launch(s *driver.Stream) error {
	if c.blocks == 0 {
		return nil
	}
	return c.f.Launch(s, driver.Dim{X: c.blocks}, driver.Dim{X: c.threads}, c.shared, c.args)
}

// launchAll puts calls into a stream.
func launchAll(s *driver.Stream, calls []call) error {
	for _, c := range calls {
		if err := c.launch(s); err != nil {
			return err
		}
	}
	return nil
}
