package multigrid

import (
	"context"

	"jacobi/solver"
	"jacobi/solver/multigrid/aggregation"
)

// Layout describes what a device holds. Of a level finer than Agglomerated it holds the rows of its stripe and, where
// the mesh goes on beyond, HaloDepth rows more; of all other levels it holds the whole.
type Layout struct {
	Plan         *Plan
	Agglomerated int              // the first level that is held as a whole, at least 1
	Stripes      []solver.Stripe  // rows of the interior that this rank owns, by level finer than Agglomerated
	Neighbour    [2]bool          // by solver.Side: the rows beyond are those of another rank
	Magnitude    solver.Magnitude // E: no value of the initial field or of the source is above 2^E
	Values       solver.ValueRows
	Fixed        FixedRuns // of a weighted operator; nil for no fixed points inside the mesh
	Lever        *Lever    // of a weighted operator: takes the Factors; nil if nobody asks
}

// Array is one of the arrays of a level.
type Array uint8

// The arrays that are copied between ranks and to files.
const (
	Unknowns  Array = iota // u: the field on level 0, a correction in float32 on all others
	RightSide              // b; on level 0 the source, if there is one

	// Of the levels of a weighted operator, in float64, of all but the finest one while they are set up: the diagonal,
	// the couplings, and the scaling g. See Grid.SetUp.
	Centre
	East
	South
	SouthEast
	SouthWest
	Scaling
)

// RowBytes returns the bytes of a dense row of an array of a level.
func (p *Plan) RowBytes(level int, a Array) int {
	m := p.Levels[level].Mesh
	if a > RightSide {
		m.DType = solver.Float64
	}
	return m.RowBytes()
}

// Device computes the cycles of one rank. For each cycle its caller calls, in this order,
//
//	Down(0), .., Down(Agglomerated-1)   Agglomerate()   Up(Agglomerated-1), .., Up(0)
//
// and copies rows in between: before Down(0) the HaloDepth rows of Unknowns on both sides of the stripe, before Down(l)
// those of RightSide on level l > 0, before Agglomerate the whole RightSide of level Agglomerated, and before Up(l)
// the HaloDepth rows of Unknowns of level l+1, if that level is divided. Where Neighbour is not set there is nothing to
// copy. After Down(0) the field is still the one before it, so a run may end there.
//
// A sweep with weight w computes, at every point that is not fixed,
//
//	s = west + east   t = north + south   d = fma(h, fma(q, t-s, s), b) - u   u = fma(w, d, u)
//
// each operation rounded once in the level's type, with h and q of the level, and 0 for b on level 0 without source.
// The sweeps and transfers of a weighted operator are those of docs/numerics.md.
type Device interface {
	// Load fills the field, with the rows of both walls and halos, and reads the source.
	Load(ctx context.Context, rows solver.RowSource) error
	// Down does SmootherSweeps sweeps with Weights, beginning with the field on level 0 and with 0 on all others. Then
	// it restricts the defect d to the rows of the next level that the rank owns: their right-hand side is
	//
	//	b = fma(Gain, r, +0)   r = sum over columns of wx (sum over rows of wy d)
	//
	// in float32, where d is rounded to float32 (on level 0 after a multiplication by 2^-E), each sum runs over
	// Axis.Around in ascending order, its first term is a product and each further one an fma with Axis.Weight, and d
	// is +0 at points that no sweep updates.
	Down(ctx context.Context, level int) error
	// Sum returns the sum of squares of d of the first sweep of the last Down(0), over the rows that the rank owns.
	Sum(ctx context.Context) (solver.Sum, error)
	// Agglomerate computes Unknowns of level Agglomerated from its RightSide, by Plan.CycleIndex cycles: the first
	// begins with 0, and the second with the result of the first. On the coarsest level it computes them as
	// Factors.Solve does, rounded to float32.
	Agglomerate(ctx context.Context) error
	// Up adds the correction from the next level to what Down left, in every row that the sweeps read, and does
	// SmootherSweeps sweeps with Weights in reverse. At a point between coarse rows I and I+1 and columns K and K+1,
	// with weights wy and wx of Axis.Between, the correction is
	//
	//	t_K = fma(wy, u[I+1][K]-u[I][K], u[I][K])   e = fma(wx, t_K+1 - t_K, t_K)
	//
	// in float32; values beyond the coarse mesh are +0. It is added as u + e, on level 0 as fma(2^E, e, u).
	Up(ctx context.Context, level int) error
	// Coarsen computes the stencil of level+1 of a weighted operator, the five arrays from Centre on, in the rows that
	// belong to those that the rank owns. It, Scale and Complete set the levels up, before the first cycle (Grid.SetUp;
	// internal/compute/reference defines the bits).
	Coarsen(ctx context.Context, level int) error
	// Scale computes the scaling of a level, an array, in the rows that the rank owns.
	Scale(ctx context.Context, level int) error
	// Complete computes what cycles need of the levels: couplings, transfers, and all of the levels that the rank holds
	// as a whole. The arrays from Centre on are not used any more.
	Complete(ctx context.Context) error
	// Aggregate replaces all levels but the finest one by aggregates, for good: the layout is that of a plan with
	// Aggregates, and the part has the sets of the points that this rank restricts or corrects. The field stays as it
	// is. From then on, in float64, Down(0) restricts the residuals, which are C d worked out by differences, times
	// 2^-E: b of a set is their sum over its points, from row to row and from left to right, beginning with +0.
	// Agglomerate solves with aggregation.Solver. Up(0) adds 2^E u of the set to a point.
	Aggregate(ctx context.Context, l Layout, part *aggregation.Part) error
	// CopyRows copies rows [s.Lo, s.Hi) of an array that the rank owns to dst: dense, NX values of the level's type. Of
	// level 0 of a weighted operator there are Centre, East and South, too: C, 0 at points that no sweep updates, and
	// the couplings, in all rows that the device holds. Several goroutines may copy these at once.
	CopyRows(ctx context.Context, level int, a Array, s solver.Stripe, dst []byte) error
	// SetRows sets rows [s.Lo, s.Hi) of an array that the device holds.
	SetRows(ctx context.Context, level int, a Array, s solver.Stripe, src []byte) error
	// Squares returns the sum of the squares of the field in OwnColumns of the rows that the rank owns. Its terms
	// are those of groups, as in CG.Products, and the field is of magnitude e.
	Squares(ctx context.Context, e solver.Magnitude) (solver.Sum, error)
	// Largest returns the largest absolute value of Unknowns in OwnColumns of rows s that the rank owns; NaN
	// if one is NaN.
	Largest(ctx context.Context, level int, s solver.Stripe) (float64, error)
	// Bytes returns the bytes of memory that the device uses.
	Bytes() int64
	Close() error
}

// OwnColumns returns the columns of a mesh that are no copies of others, which devices may not keep.
func OwnColumns(m solver.Mesh) solver.Stripe {
	if m.PeriodicColumns() {
		return solver.Stripe{Lo: 1, Hi: m.NX - 1}
	}
	return solver.Stripe{Hi: m.NX}
}

// AgglomeratedRows returns the rows of level Agglomerated whose right-hand side this rank computes.
func (l Layout) AgglomeratedRows() solver.Stripe {
	return l.Plan.Below(l.Agglomerated-1, l.Stripes[l.Agglomerated-1:])[0]
}

// Below returns the rows of level 1 that belong to the rows that this rank owns of level 0.
func (l Layout) Below() solver.Stripe { return l.Plan.Below(0, l.Stripes[:1])[0] }

// LayoutOf returns the layout of a rank that divides the levels as Divide has them. What the problem and the
// method say, from Magnitude on, is left to the caller.
func (p *Plan) LayoutOf(stripes [][]solver.Stripe, agglomerated, rank int) Layout {
	ranks, ring := len(stripes[0]), p.Levels[0].Mesh.PeriodicRows()
	l := Layout{Plan: p, Agglomerated: agglomerated}
	if ranks > 1 {
		l.Neighbour = [2]bool{solver.Top: rank > 0 || ring, solver.Bottom: rank < ranks-1 || ring}
	}
	for _, level := range stripes {
		l.Stripes = append(l.Stripes, level[rank])
	}
	return l
}
