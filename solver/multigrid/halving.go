package multigrid

import (
	"fmt"
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid/aggregation"
)

// Halving is one direction of the transfer of a weighted operator between a level and the next coarser one. Every other
// point of Fine intervals is a coarse point, and so is the last one: point i lies on coarse point i/2 if i is even, on
// coarse point Coarse = (i+1)/2 if it is the last one, and between coarse points (i-1)/2 and (i+1)/2 otherwise. A
// direction that is not coarsened has Coarse = Fine, and all its points are coarse. Points are those of the mesh: with
// periodic walls point 0 is the copy of point Fine, and the rule repeats every Fine points.
type Halving struct {
	Fine, Coarse int
	Periodic     bool
}

// At returns the coarse point on which fine point i lies or, if it lies between two, the one before it.
func (h Halving) At(i int) (coarse int, between bool) {
	if h.Coarse == h.Fine {
		return i, false
	}
	shift := 0
	if h.Periodic {
		round := solver.FloorDiv(i-1, h.Fine)
		i, shift = i-round*h.Fine, round*h.Coarse
	}
	switch {
	case i%2 == 0:
		return i/2 + shift, false
	case i == h.Fine:
		return h.Coarse + shift, false
	}
	return solver.FloorDiv(i, 2) + shift, true
}

// On returns the fine point that lies on a coarse point.
func (h Halving) On(coarse int) int {
	if h.Coarse == h.Fine {
		return coarse
	}
	round := 0
	if h.Periodic {
		round = solver.FloorDiv(coarse-1, h.Coarse)
	}
	return min(2*(coarse-round*h.Coarse), h.Fine) + round*h.Fine
}

// Around returns the fine points that lie on a coarse point or between it and the next ones, [first, end). Some may lie
// beyond the mesh, and some on another coarse point.
func (h Halving) Around(coarse int) (first, end int) {
	on := h.On(coarse)
	if h.Coarse == h.Fine {
		return on, on + 1
	}
	return on - 1, on + 2
}

// From returns the first coarse point that lies on fine point i or behind it.
func (h Halving) From(i int) int {
	if h.Coarse == h.Fine || i > h.Fine {
		return i - h.Fine + h.Coarse
	}
	return ceilDiv(i, 2)
}

// next returns the number of intervals to which n are coarsened.
func next(n int) int {
	if n <= coarsestIntervals {
		return n
	}
	return ceilDiv(n, 2)
}

// strongContrast is the contrast from which on larger levels do their cycles twice, and conjugate gradients begin with
// the first cycle. Layers of unlike materials act on coarse levels as a material that conducts much better along them
// than across, of which sweeps of points smooth little, so that one cycle corrects little (docs/notebook/figures.md).
const strongContrast = 50

// wCyclePoints returns Plan.WCyclePoints of a weighted operator: levels of about 64 x 64 or 256 x 256 intervals.
func wCyclePoints(contrast float64) int {
	if contrast < strongContrast {
		return 4900
	}
	return 70000
}

// hard returns Plan.Hard of a weighted operator. Plain cycles may leave errors that neither norms nor corrections show
// where weights differ strongly or points border on others without a material, and nothing bounds a correction where
// the constant is free.
func hard(op solver.Operator) bool { return op.Contrast >= strongContrast || op.Open || op.Loose }

// newWeightedPlan returns the levels of a weighted operator.
func newWeightedPlan(mesh solver.Mesh, op solver.Operator) (*Plan, error) {
	ratio := op.Ratio
	if !(ratio > 0) || math.IsInf(ratio, 0) {
		return nil, fmt.Errorf("multigrid: %v as the ratio of spacings of a weighted operator", ratio)
	}
	w := mesh.Walls
	x0, y0 := solver.Intervals(mesh.NX, w.Left), solver.Intervals(mesh.NY, w.Top)
	p := &Plan{Levels: []Level{{Mesh: mesh}}, Weighted: true, WCyclePoints: wCyclePoints(op.Contrast), Loose: op.Loose,
		Hard: hard(op), Tiling: aggregation.NewTiling(mesh, ratio)}
	for x, y := x0, y0; ; {
		fx, fy := float64(x0)/float64(x), float64(y0)/float64(y)
		rho := float64(ratio*float64(fx*fx)) / float64(fy*fy)
		columns, rows := coarsened(rho)
		nx, ny := x, y
		if columns {
			nx = next(x)
		}
		if rows {
			ny = next(y)
		}
		if nx == x && ny == y && len(p.Levels) > 1 {
			return p, nil
		}
		last := &p.Levels[len(p.Levels)-1]
		last.HalveX = Halving{Fine: x, Coarse: nx, Periodic: w.Left == solver.Periodic}
		last.HalveY = Halving{Fine: y, Coarse: ny, Periodic: w.Top == solver.Periodic}
		x, y = nx, ny
		p.Levels = append(p.Levels, Level{Mesh: solver.Mesh{NX: points(x, w.Left), NY: points(y, w.Top),
			DType: solver.Float32, Walls: w}})
	}
}
