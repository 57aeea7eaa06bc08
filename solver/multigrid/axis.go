package multigrid

import "jacobi/solver"

// Axis is one direction of the transfer between a level and the next coarser one. Point i of Fine intervals lies where
// point i*Coarse/Fine of Coarse intervals would lie, Fine/2 <= Coarse <= Fine. Points are those of the mesh: with
// periodic walls point 0 is the copy of point Fine, and point Fine+1 that of point 1.
type Axis struct {
	Fine, Coarse int
	Low, High    solver.Wall
}

// Between returns the coarse point I at or before fine point i, and the weight of point I+1 in the interpolation at i;
// point I has the rest. The weight is (i*Coarse mod Fine)/Fine, rounded to float64 and then to float32. i may be
// negative.
func (a Axis) Between(i int) (coarse int, weight float32) {
	n := i * a.Coarse
	coarse = solver.FloorDiv(n, a.Fine)
	return coarse, float32(float64(n-coarse*a.Fine) / float64(a.Fine))
}

// Taps is the largest number of fine points that the restriction to a coarse point reads.
const Taps = 4

// Around returns the fine points that the restriction to coarse point I reads, those less than one coarse interval away
// from it: first, first+1, ..., at most Taps; some may lie beyond the mesh.
func (a Axis) Around(coarse int) (first, n int) {
	first = solver.FloorDiv((coarse-1)*a.Fine, a.Coarse) + 1
	return first, ceilDiv((coarse+1)*a.Fine, a.Coarse) - first
}

// Weight returns the weight of fine point i in the restriction to coarse point I: Coarse/Fine times the weight of I in
// the interpolation at i, and twice that at a coarse point on a Neumann wall unless i lies there too, since such a
// point stands for half an interval. It is rounded to float64 and then to float32.
func (a Axis) Weight(coarse, i int) float32 {
	distance := i*a.Coarse - coarse*a.Fine
	onWall := coarse == 0 && a.Low == solver.Neumann || coarse == a.Coarse && a.High == solver.Neumann
	n := max(0, a.Fine-max(distance, -distance)) * a.Coarse
	if onWall && distance != 0 {
		n *= 2
	}
	return float32(float64(n) / (float64(a.Fine) * float64(a.Fine)))
}

// divide returns the coarse rows of ranks that own the given fine rows.
func (a Axis) divide(stripes []solver.Stripe) []solver.Stripe {
	coarse := make([]solver.Stripe, len(stripes))
	for r, s := range stripes {
		coarse[r] = solver.Stripe{Lo: ceilDiv(s.Lo*a.Coarse, a.Fine), Hi: ceilDiv(s.Hi*a.Coarse, a.Fine)}
	}
	return coarse
}

func ceilDiv(a, b int) int { return -solver.FloorDiv(-a, b) }
