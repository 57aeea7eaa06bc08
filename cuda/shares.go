package cuda

import (
	"math"

	"jacobi/solver"
)

// deep describes sweep_deep.cu for values of so many bytes, with so many columns a lane, sweeps a warp, rows between two barriers, warps a pipeline and
// warps a block; edge is by how many eighths the outer strips count as longer than they are.
func deep(name string, size, columns, levels, step, mostWarps, blockWarps, edge int) shape {
	return shape{name: name, threads: 32 * blockWarps, most: levels * mostWarps, divide: func(c capacity, p *pass) (division, bool) {
		const barriers = 15 // that a block has, but for the one of __syncthreads
		sweeps := int(p.sweeps)
		slot := 32 * columns * size             // a row in shared memory
		warps := (sweeps + levels - 1) / levels // of a pipeline
		stale := (sweeps + columns - 1) / columns
		shared := (solver.GroupRows+2*step*(warps-1))*slot + levels*warps*sumBytes // of a pipeline
		pipes := min(blockWarps/warps, c.shared/shared)
		if warps > 1 {
			pipes = min(pipes, barriers/(warps/2))
		}
		if pipes == 0 {
			return division{}, false
		}
		width := (32 - 2*stale) * columns // the columns of the outer lanes are not right in the end
		l := line{
			strips: (int(p.nx) + width - 1) / width,
			groups: p.groups(),
			seam:   (2*sweeps + 6*solver.GroupRows) / solver.GroupRows,
			edge:   edge,
			fill:   2*sweeps + (levels+step)*warps,
		}
		p.seam, p.edge = int32(l.seam), int32(l.edge)
		pipes, blocks := l.share(c.sms, pipes)
		return division{blocks: blocks, threads: pipes * 32 * warps, shared: pipes * shared}, true
	}}
}

// line is what pipelines of warps share out, see kernels/shares.cuh.
type line struct {
	strips, groups int
	seam, edge     int
	fill           int // rows that a share costs besides its own: overlap, and filling the pipeline
}

// positions returns its length.
func (l line) positions() int {
	return l.strips*(l.groups+l.seam) + min(l.strips, 2)*(l.groups*l.edge/8)
}

// share chooses the pipelines a block, at most so many, and the blocks. More pipelines have smaller shares, but each share costs its overlap with the
// next, and pipelines slow each other down. There is a block for each multiprocessor, unless shares would be empty. The constants
// were fitted to an H200; see docs/performance.md.
func (l line) share(sms, most int) (pipes, blocks int) {
	positions := l.positions()
	best := math.Inf(1)
	for n := 1; n <= most; n++ {
		full := float64(n) / float64(most)
		rows := float64(positions*solver.GroupRows) / float64(sms*n)
		// What a row and a row of filling cost, relative to a row on a full multiprocessor.
		row, fill := max(0.35, 1-1.09*(1-full)*(1-full)), 0.6+0.34*full*full*full
		if cost := row*rows + fill*float64(l.fill); cost < best {
			best, pipes = cost, n
		}
	}
	return pipes, min(sms, (positions+pipes-1)/pipes)
}
