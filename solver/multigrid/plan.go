// Package multigrid solves the equations of a mesh by multigrid cycles. Each level has about half as many intervals as
// the level before it, in one direction or in both. Weighted Jacobi sweeps are the smoother. docs/methods.md explains
// the method, docs/numerics.md defines its bits. The package knows no device and no network: see Device and Exchange.
package multigrid

import (
	"errors"
	"fmt"
	"slices"

	"jacobi/solver"
	"jacobi/solver/multigrid/aggregation"
)

// Plan is the levels of a mesh. It follows from the mesh and its operator alone, so it is the same on all ranks.
type Plan struct {
	// Levels are the meshes from the finest one, which is the mesh of the run in float64, to the coarsest one. There
	// are at least two. The unknowns of all levels but the finest are corrections in float32, or with Aggregates in
	// float64.
	Levels []Level
	// Coarsest are the couplings of the coarsest level, not rounded to float32: Factors solve there.
	Coarsest Couplings
	// Weighted is set for a weighted operator, whose levels have stencils of their own (see Grid.SetUp).
	Weighted bool
	// Loose is solver.Operator.Loose. A correction is then 0 at an unknown of the coarsest level.
	Loose bool
	// WCyclePoints is the largest number of points of a level whose cycle a cycle of a weighted operator does twice
	// (see CycleIndex). NewPlan sets it.
	WCyclePoints int
	// Hard is set where conjugate gradients begin with the first cycle of a weighted operator. Elsewhere they begin
	// where plain cycles are slow. NewPlan sets it.
	Hard bool
	// Tiling divides the mesh of a weighted operator into the tiles of aggregates, and Aggregates are those: nil unless
	// they take the place of the coarser levels (see Grid.Aggregate). Their unknowns are in float64.
	Tiling     aggregation.Tiling
	Aggregates *aggregation.Levels
}

// Level is one of the meshes of a Plan.
type Level struct {
	Mesh solver.Mesh // in float64 on level 0 and with Aggregates, in float32 on all others
	// Scale and Blend are h and q of the level's operator, as in solver.Operator, in the level's type.
	Scale, Blend float64
	// X and Y lead to the next coarser level. Those of the coarsest level are not set.
	X, Y Axis
	// HalveX and HalveY take the place of X and Y for a weighted operator, whose Levels have no other numbers.
	HalveX, HalveY Halving
	// Gain turns a restricted defect of this level into the right-hand side of the next one: (D/hx^2) of this level by
	// that of the next, D = 2(1+rho) + k2 hx^2; a float32 value.
	Gain float64
}

// Transfer is one direction of the transfer between a level and the next coarser one: an Axis or a Halving.
type Transfer interface {
	// Around returns the fine points that a coarse point reads, [first, end). Some may lie beyond the mesh.
	Around(coarse int) (first, end int)
	// From returns the first coarse point that lies on fine point i or behind it.
	From(i int) int
}

// Rows returns the transfer between the rows of a level and those of the next one.
func (l Level) Rows() Transfer {
	if l.HalveY.Fine > 0 {
		return l.HalveY
	}
	return l.Y
}

// LeftRows returns the rows that Down leaves for Up on a device that owns the given ones, where a neighbour goes on
// beyond a side.
func LeftRows(own solver.Stripe, neighbour [2]bool) solver.Stripe {
	return own.Reach(SmootherSweeps, neighbour)
}

// NewPlan returns the levels for a mesh in float64 with the given operator. They depend neither on its source nor
// on its fixed points, and only a weighted operator may have the latter.
func NewPlan(mesh solver.Mesh, op solver.Operator) (*Plan, error) {
	if mesh.DType != solver.Float64 {
		return nil, fmt.Errorf("multigrid: a mesh of %v: only float64 is possible", mesh.DType)
	}
	if err := op.Check(mesh.DType); err != nil {
		return nil, fmt.Errorf("multigrid: %w", err)
	}
	if op.Weighted {
		return newWeightedPlan(mesh, op)
	}
	if op.Fixed != nil {
		return nil, errors.New("multigrid: fixed points inside the mesh, and points without weights of their own")
	}
	op = op.General()
	e := newEquation(mesh, op)
	x, y := newCount(solver.Intervals(mesh.NX, mesh.Walls.Left)), newCount(solver.Intervals(mesh.NY, mesh.Walls.Top))
	p := &Plan{Levels: []Level{{Mesh: mesh, Scale: op.Scale, Blend: op.Blend}}, Loose: op.Loose}
	for {
		nx, ny := e.coarsen(x, y)
		if nx == x && ny == y && len(p.Levels) > 1 {
			break
		}
		last := &p.Levels[len(p.Levels)-1]
		last.X = Axis{Fine: x.n, Coarse: nx.n, Low: mesh.Walls.Left, High: mesh.Walls.Right}
		last.Y = Axis{Fine: y.n, Coarse: ny.n, Low: mesh.Walls.Top, High: mesh.Walls.Bottom}
		last.Gain = float64(float32(e.gain(x, y, nx, ny)))
		x, y = nx, ny
		p.Levels = append(p.Levels, e.level(x, y))
	}
	p.Coarsest = e.couplings(x, y)
	return p, nil
}

// points returns the number of points for n intervals, the inverse of solver.Intervals.
func points(n int, w solver.Wall) int {
	if w == solver.Periodic {
		return n + 2
	}
	return n + 1
}

// coarsestIntervals is the largest number of intervals that is not halved any more.
const coarsestIntervals = 8

// count is the number of intervals of a level in one direction.
type count struct {
	n    int
	next int // of the next coarser level; n if there is none
}

// newCount returns the count of the finest level. The first coarser level has 2^k ceil(n / 2^(k+1)) intervals, with k
// such that halving them k times leaves 5 to 8.
func newCount(n int) count {
	next, halvings := n, 0
	for next > coarsestIntervals {
		halvings++
		next = (n + 1<<halvings - 1) >> halvings
	}
	if halvings == 0 {
		return count{n, n}
	}
	return count{n, next << (halvings - 1)}
}

// coarser returns the count of the next coarser level.
func (c count) coarser() count {
	if c.next <= coarsestIntervals {
		return count{c.next, c.next}
	}
	return count{c.next, c.next / 2}
}

// Couplings are the weights of a point's neighbours in the equation of a level, u - X (west + east) - Y (north + south)
// = b. In the terms of solver.Operator, X is h(1-q) and Y is hq.
type Couplings struct{ X, Y float64 }

// equation is the equation of a mesh in the terms that the levels have in common.
type equation struct {
	walls     solver.Walls
	x, y      int     // intervals of the finest level
	ratio     float64 // rho = (hx/hy)^2 of the finest level
	screening float64 // k2 hx^2 of the finest level
}

func newEquation(m solver.Mesh, op solver.Operator) equation {
	rho := op.Blend / (1 - op.Blend)
	return equation{
		walls: m.Walls, x: solver.Intervals(m.NX, m.Walls.Left), y: solver.Intervals(m.NY, m.Walls.Top), ratio: rho,
		screening: max(0, (1+rho)/op.Scale-float64(2*(1+rho))),
	}
}

// coarsened reports whether columns and rows are coarsened where (hx/hy)^2 is rho: a direction is while its spacing is
// at most sqrt(2) times that of the other one. Sweeps only smooth what changes fast along the shorter spacing.
func coarsened(rho float64) (columns, rows bool) { return rho <= 2, rho >= 0.5 }

// coarsen returns the counts of the next coarser level.
func (e equation) coarsen(x, y count) (nx, ny count) {
	rho, _ := e.at(x, y)
	columns, rows := coarsened(rho)
	nx, ny = x, y
	if columns {
		nx = x.coarser()
	}
	if rows {
		ny = y.coarser()
	}
	return nx, ny
}

// at returns rho and D of a level.
func (e equation) at(x, y count) (rho, d float64) {
	fx, fy := float64(e.x)/float64(x.n), float64(e.y)/float64(y.n)
	rho = float64(e.ratio*float64(fx*fx)) / float64(fy*fy)
	return rho, float64(2*(1+rho)) + float64(e.screening*float64(fx*fx))
}

// gain returns Level.Gain, not rounded to float32.
func (e equation) gain(x, y, nx, ny count) float64 {
	_, fine := e.at(x, y)
	_, coarse := e.at(nx, ny)
	ratio := float64(x.n) / float64(nx.n)
	return float64(fine/coarse) * float64(ratio*ratio)
}

// level returns a coarser level.
func (e equation) level(x, y count) Level {
	rho, d := e.at(x, y)
	return Level{
		Mesh: solver.Mesh{NX: points(x.n, e.walls.Left), NY: points(y.n, e.walls.Top), DType: solver.Float32,
			Walls: e.walls},
		Scale: float64(float32((1 + rho) / d)), Blend: float64(float32(rho / (1 + rho))),
	}
}

// couplings returns the couplings of a level.
func (e equation) couplings(x, y count) Couplings {
	rho, d := e.at(x, y)
	return Couplings{X: 1 / d, Y: rho / d}
}

// HaloDepth is the number of rows beyond its stripe that a rank reads of every level that is divided among ranks: four
// sweeps, and what four sweeps more or the restriction need.
const HaloDepth = 2 * SmootherSweeps

// AgglomeratedPoints is the largest number of points of a level that every rank holds as a whole for the sake of speed.
const AgglomeratedPoints = 512 * 512

// Divide divides the levels among ranks that own the given stripes of level 0. It returns the rows of each rank, by
// level and rank, of the levels that are divided, and the first level that every rank holds as a whole, as it does all
// coarser ones. It goes from fine to coarse, and stops at the first level with at most the given number of points or
// WCyclePoints, or with fewer than HaloDepth rows for some rank. It never divides the coarsest level, and for a single
// rank level 0 alone.
func (p *Plan) Divide(stripes []solver.Stripe, points int) (divided [][]solver.Stripe, agglomerated int) {
	divided = [][]solver.Stripe{stripes}
	for agglomerated = 1; len(stripes) > 1 && agglomerated < len(p.Levels)-1; agglomerated++ {
		m := p.Levels[agglomerated].Mesh
		next := p.Below(agglomerated-1, divided[agglomerated-1])
		low := slices.ContainsFunc(next, func(s solver.Stripe) bool { return s.Rows() < HaloDepth })
		if low || m.NX*m.NY <= max(points, p.WCyclePoints) {
			break
		}
		divided = append(divided, next)
	}
	return divided, agglomerated
}

// CycleIndex returns the cycle index of a level that is held as a whole: 2, as in a W-cycle, on the first three levels
// that have at most WCyclePoints points, and 1, as in a V-cycle, on all others. With 2 on all smaller levels a GPU
// would spend as long on them as on a larger level. The coarsest level is solved once.
func (p *Plan) CycleIndex(level int) int {
	first, coarsest := 1, len(p.Levels)-1
	for m := p.Levels[1].Mesh; first < coarsest && m.NX*m.NY > p.WCyclePoints; m = p.Levels[first].Mesh {
		first++
	}
	if p.Weighted && first <= level && level < min(first+3, coarsest) {
		return 2
	}
	return 1
}

// Below returns the rows of the next coarser level, or its unknowns, that belong to stripes of the given one.
func (p *Plan) Below(level int, stripes []solver.Stripe) []solver.Stripe {
	below, rows := make([]solver.Stripe, len(stripes)), p.Levels[level].Rows()
	for r, s := range stripes {
		below[r] = solver.Stripe{Lo: rows.From(s.Lo), Hi: rows.From(s.Hi)}
		if p.Aggregates != nil {
			tiles := p.Tiling.Owned(s)
			below[r] = solver.Stripe{Lo: int(p.Aggregates.First[tiles.Lo]), Hi: int(p.Aggregates.First[tiles.Hi])}
		}
	}
	return below
}

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
// from it: [first, end), at most Taps; some may lie beyond the mesh.
func (a Axis) Around(coarse int) (first, end int) {
	return solver.FloorDiv((coarse-1)*a.Fine, a.Coarse) + 1, ceilDiv((coarse+1)*a.Fine, a.Coarse)
}

// From returns the first coarse point that lies on fine point i or behind it.
func (a Axis) From(i int) int { return ceilDiv(i*a.Coarse, a.Fine) }

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

func ceilDiv(a, b int) int { return -solver.FloorDiv(-a, b) }

// SmootherSweeps is the number of weighted sweeps before, and again after, the correction from the coarser level.
const SmootherSweeps = 4

// Weights returns the weights of the sweeps before the correction; those after it are the same, reversed. They are the
// roots of the Chebyshev polynomial of the fourth kind, w_j = 1/(1 - cos(2 pi j/(2k+1))), j = 1..k, for k =
// SmootherSweeps and eigenvalues up to 2 (J. Lottes, "Optimal polynomial smoothers for multigrid V-cycles", Numerical
// Linear Algebra with Applications 30, 2023).
func Weights() [SmootherSweeps]float64 {
	return [SmootherSweeps]float64{4.2743160852065145, 1.2101383127306031, 0.6666666666666667, 0.5155456020628817}
}
