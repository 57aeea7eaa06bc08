// Package setup divides a run among its ranks: stripes, halos, passes and levels. It is pure. The launcher, which tells
// of a run before it starts, and every rank of the run call it with what they know and come to the same Setup.
package setup

import (
	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/solver"
	"jacobi/solver/jacobi"
	"jacobi/solver/methods"
	"jacobi/solver/multigrid"
)

// Depth is the depth of a run's halos.
type Depth struct {
	Rows   int    `json:"rows"`   // in a halo
	Sweeps int    `json:"sweeps"` // most sweeps in a pass
	Why    string `json:"why"`    // for the report; "" unless links were measured
}

// DepthOf returns the depth that the keys give, or, as auto reports, the one that all devices prefer, at most the rows
// of the lowest stripe.
func DepthOf(c configs.Config, mesh solver.Mesh, preferred int) (d Depth, auto bool) {
	rows := c.HaloDepth()
	if auto = rows == 0; auto {
		rows = max(1, min(preferred, solver.MinRows(mesh.Interior(), c.Working())))
	}
	return Depth{Rows: rows, Sweeps: rows}, auto
}

// Options are what a run is divided by.
type Options struct {
	Mesh      solver.Mesh
	Operator  solver.Operator
	Norms     solver.Cadence // of sweeps
	Method    methods.Method
	Ranks     int
	Weights   []float64 // of the stripes, by rank; nil: they are equal
	Depth     Depth
	MaxSweeps int  // most sweeps in a pass of any device
	ReachAll  bool // all ranks are GPUs that write into each other's memory, and the method wants that
}

// Setup is a run that is divided among its ranks.
type Setup struct {
	Options
	Stripes []solver.Stripe // by rank
	Sweeps  int             // most sweeps in a pass
	Ahead   int             // see jacobi.PassesAhead
	Sums    int             // most sums that are added over the ranks at once
	Levels  *Levels         // nil without multigrid
}

// Levels are the levels of multigrid.
type Levels struct {
	*multigrid.Plan
	Points       int               // bounds the levels that every rank holds as a whole; see multigrid.Plan.Divide
	Stripes      [][]solver.Stripe // by level and rank
	Agglomerated int               // the first level that every rank holds as a whole
}

// New divides a run.
func New(o Options) (*Setup, error) {
	stripes, err := solver.PartitionBy(o.Mesh.Interior(), o.Weights, o.Ranks, o.Depth.Rows)
	if err != nil {
		return nil, err
	}
	if !o.Method.Levels {
		sweeps := min(o.Depth.Sweeps, o.MaxSweeps)
		o.ReachAll = false
		return &Setup{Options: o, Stripes: stripes, Sweeps: sweeps, Sums: sweeps,
			Ahead: jacobi.PassesAhead(o.Mesh, stripes, sweeps)}, nil
	}
	o.Norms = solver.Cadence{}
	plan, err := multigrid.NewPlan(o.Mesh, o.Operator)
	if err != nil {
		return nil, err
	}
	l := &Levels{Plan: plan, Points: multigrid.AgglomeratedPoints}
	if o.ReachAll {
		l.Points = cuda.TailPoints
	}
	l.Stripes, l.Agglomerated = plan.Divide(stripes, l.Points)
	return &Setup{Options: o, Stripes: stripes, Sweeps: 1, Ahead: 1, Sums: multigrid.ProductSums, Levels: l}, nil
}

// Layout returns the stripe of a rank, without the magnitude. With periodic rows the ranks form a ring; a single rank
// of multigrid has no neighbours all the same.
func (s *Setup) Layout(rank int) solver.Layout {
	l := solver.Layout{Mesh: s.Mesh, Operator: s.Operator, Norms: s.Norms, Stripe: s.Stripes[rank], Depth: s.Depth.Rows,
		Sweeps: s.Sweeps}
	ring := s.Mesh.PeriodicRows() && (s.Levels == nil || s.Ranks > 1)
	l.Neighbour[solver.Top] = rank > 0 || ring
	l.Neighbour[solver.Bottom] = rank < s.Ranks-1 || ring
	return l
}

// LevelLayout returns the rows of a rank on all levels of multigrid, without the magnitude and the fixed points.
func (s *Setup) LevelLayout(rank int) multigrid.Layout {
	l := s.Levels.LayoutOf(s.Levels.Stripes, s.Levels.Agglomerated, rank)
	l.Values = s.Operator.Values
	return l
}
