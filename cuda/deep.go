package cuda

import (
	"math"

	"jacobi/solver"
)

// deepShape is the shape of a kernel in sweep_deep.cu, whose blocks hold pipelines of warps.
type deepShape struct {
	size      int  // bytes of a value
	columns   int  // of a lane
	levels    int  // sweeps that a warp does
	step      int  // rows between two barriers
	warps     int  // largest number of warps in a block
	pipeWarps int  // largest number of warps in a pipeline
	edge      int  // eighths of their length that are added to the outer strips when they are shared out
	values    int  // of a point besides that of the field, which need a ring of their own
	whole     bool // the kernel does whole multiples of levels alone
}

// deep describes a kernel in sweep_deep.cu.
func deep(name string, s deepShape) shape {
	return shape{name: name, maxThreads: warpSize * s.warps, maxSweeps: s.levels * s.pipeWarps, divide: s.divide}
}

// bare describes a kernel in sweep_deep.cu for passes without norms or with that of the last sweep.
func bare(name string, s deepShape) shape {
	b := deep(name, s)
	b.bare = true
	return b
}

func (s deepShape) divide(c capacity, p *pass) (division, bool) {
	const barriers = 15 // of a block, without the one of __syncthreads
	sweeps := int(p.sweeps)
	if s.whole && sweeps%s.levels != 0 {
		return division{}, false
	}
	slot := warpSize * s.columns * s.size       // bytes of a row in shared memory
	warps := (sweeps + s.levels - 1) / s.levels // of a pipeline
	stale := (sweeps + s.columns - 1) / s.columns
	rings := solver.GroupRows + 2*s.step*(warps-1) + s.sourceSlots(warps) // slots of a pipeline
	shared := rings*slot + s.levels*warps*sumBytes
	pipes := min(s.warps/warps, c.shared/shared)
	if warps > 1 {
		pipes = min(pipes, barriers/(warps/2))
	}
	if pipes == 0 {
		return division{}, false
	}
	overlap := 2 * stale * s.columns // of two strips: columns beside the cut are stale after the last sweep
	width := warpSize*s.columns - overlap
	l := line{
		strips: max((int(p.nx)-overlap+width-1)/width, 1),
		groups: p.groups(),
		seam:   (2*sweeps + 6*solver.GroupRows) / solver.GroupRows,
		edge:   s.edge,
		fill:   2*sweeps + (s.levels+s.step)*warps,
	}
	pipes, blocks := l.share(c.sms, pipes)
	return division{
		blocks: blocks, threads: pipes * warpSize * warps, shared: pipes * shared,
		cut: cut{seam: int32(l.seam), edge: int32(l.edge)},
	}, true
}

// sourceSlots returns the slots of the ring for a source or the values of weighted points, see
// kernels/deep_source.cuh.
func (s deepShape) sourceSlots(warps int) int {
	ahead := solver.GroupRows - s.step
	rows := ahead + 1 + (s.levels+2*s.step)*(warps-1)
	if warps == 1 {
		rows = ahead + 1 + s.step
	}
	return (rows + solver.GroupRows - 1) / solver.GroupRows * solver.GroupRows * s.values
}

// line is the sequence of positions that the pipelines of warps share out, see kernels/shares.cuh.
type line struct {
	strips, groups int
	seam, edge     int
	fill           int // rows that a share costs in addition to its own: overlap, and filling the pipeline
}

// positions returns the number of positions in the line.
func (l line) positions() int {
	return l.strips*(l.groups+l.seam) + min(l.strips, 2)*(l.groups*l.edge/8)
}

// share chooses the number of pipelines in a block, at most maxPipes, and the number of blocks. With more pipelines
// shares are smaller, but each share costs its overlap with the next, and pipelines slow each other down. There is one
// block for each multiprocessor, unless some shares would be empty. The constants were fitted to an H200; see
// docs/notebook/gpu-deep-kernel.md.
func (l line) share(sms, maxPipes int) (pipes, blocks int) {
	positions := l.positions()
	best := math.Inf(1)
	for n := 1; n <= maxPipes; n++ {
		full := float64(n) / float64(maxPipes)
		rows := float64(positions*solver.GroupRows) / float64(sms*n)
		// The costs of a row and of a row of filling, relative to a row on a full multiprocessor.
		row, fill := max(0.35, 1-1.09*(1-full)*(1-full)), 0.6+0.34*full*full*full
		if cost := row*rows + fill*float64(l.fill); cost < best {
			best, pipes = cost, n
		}
	}
	return pipes, min(sms, (positions+pipes-1)/pipes)
}
