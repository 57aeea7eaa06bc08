// Package setup divides a run among its ranks: stripes, halos, passes and levels. It has no side effects: the launcher,
// before the start, and every rank get the same Setup from the same arguments.
package setup

import (
	"cmp"
	"fmt"

	"jacobi/configs"
	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/internal/compute/cpu"
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

// DepthOf returns the depth of the method or of halo.depth, or, as auto reports, the one that all devices prefer, at
// most the rows of the lowest stripe.
func DepthOf(c configs.Config, mesh solver.Mesh, preferred int) (d Depth, auto bool) {
	working, own := c.Working(), c.Solver.Entry().Halo
	rows := cmp.Or(own, c.Halo.Depth)
	switch {
	case own > 0 && working == 1:
		rows = 1
	case rows == 0:
		auto, rows = true, max(1, min(preferred, solver.MinRows(mesh.Interior(), working)))
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
	MaxSweeps int  // most sweeps in a pass: of any device, and in a Setup of the run
	ReachAll  bool // all ranks are GPUs that write into each other's memory, and the method wants that
}

// Setup is a run that is divided among its ranks.
type Setup struct {
	Options
	Stripes []solver.Stripe // by rank
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
		o.MaxSweeps, o.ReachAll = min(o.Depth.Sweeps, o.MaxSweeps), false
		return &Setup{Options: o, Stripes: stripes, Sums: o.MaxSweeps,
			Ahead: jacobi.PassesAhead(o.Mesh, stripes, o.MaxSweeps)}, nil
	}
	o.MaxSweeps, o.Norms = 1, solver.Cadence{}
	plan, err := multigrid.NewPlan(o.Mesh, o.Operator)
	if err != nil {
		return nil, err
	}
	l := &Levels{Plan: plan, Points: multigrid.AgglomeratedPoints}
	if o.ReachAll {
		l.Points = cuda.GatheredPoints
	}
	l.Stripes, l.Agglomerated = plan.Divide(stripes, l.Points)
	return &Setup{Options: o, Stripes: stripes, Ahead: 1, Sums: multigrid.ProductSums, Levels: l}, nil
}

// Layout returns the stripe of a rank, without the magnitude. With periodic rows the ranks form a ring; a single rank
// of multigrid has no neighbours all the same.
func (s *Setup) Layout(rank int) solver.Layout {
	l := solver.Layout{Mesh: s.Mesh, Operator: s.Operator, Norms: s.Norms, Stripe: s.Stripes[rank], Depth: s.Depth.Rows,
		MaxSweeps: s.MaxSweeps}
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

// GPUs are those of the node of rank 0.
type GPUs struct {
	Count int     `json:"count"`
	Bytes int64   `json:"bytes"` // memory of the smallest
	Rate  float64 `json:"rate"`  // bytes a second from the memory of the slowest; 0 if that is not known
}

// GPUsOf returns the GPUs of a node.
func GPUsOf(devices []driver.Device) (g GPUs) {
	for i := range devices {
		bytes, rate := devices[i].TotalBytes, devices[i].MemoryRate()
		if i == 0 {
			g = GPUs{Bytes: bytes, Rate: rate}
		}
		g.Count, g.Bytes, g.Rate = i+1, min(g.Bytes, bytes), min(g.Rate, rate)
	}
	return g
}

// A cycle between nodes, by the figures under "Multigrid" in docs/notebook/nats.md.
const (
	pointBytes      = 80      // memory traffic of a cycle for a point of the mesh
	exchangeSeconds = 0.36e-3 // an exchange of a level without its bytes
	linkBytes       = 1.5e9   // a second
)

// freeShare is the share of the memory of a GPU that a run may fill: the driver and other processes need some.
const freeShare = 0.9

// Working returns how many of ranks with GPUs divide a run of multigrid on a mesh. The first near ranks are on the node
// of rank 0 and write into each other's memory. They work alone if the others are on other nodes, and if the cycles
// would take longer with these than without. Transports and weights that the keys name have all ranks work.
func Working(c configs.Config, mesh solver.Mesh, op solver.Operator, ranks, near int, g GPUs) (int, error) {
	weights, err := c.Weights()
	method := c.Solver.Entry()
	if err != nil || !method.Levels || near >= ranks || c.Halo.Transport != string(halo.ModeAuto) || weights != nil ||
		g.Rate == 0 {
		return ranks, err
	}
	depth, _ := DepthOf(c, mesh, 1)
	few, err := New(Options{Mesh: mesh, Operator: op, Method: method, Ranks: near, Depth: depth, ReachAll: near > 1})
	if err != nil {
		return ranks, err
	}
	sharing := (near + g.Count - 1) / g.Count
	bytes, err := few.Bytes(c, 0, GPU, cpu.Options{})
	if err != nil || float64(bytes)*float64(sharing) > freeShare*float64(g.Bytes) {
		return ranks, err
	}
	all, err := New(Options{Mesh: mesh, Operator: op, Method: method, Ranks: ranks, Depth: depth})
	if err != nil {
		return ranks, err
	}
	alone := pointBytes * float64(mesh.NX) * float64(mesh.NY) / (g.Rate * float64(min(near, g.Count)))
	if alone <= alone*float64(near)/float64(ranks)+all.linkSeconds() {
		return near, nil
	}
	return ranks, nil
}

// linkSeconds estimates the time of a cycle in which ranks wait for rows of other nodes: those of each divided level on
// the way down and on the way up, and the gathered level. The rows of all coarser levels together are as long as those
// of the finest.
func (s *Setup) linkSeconds() float64 {
	exchanges := 2*s.Levels.Agglomerated + 1
	bytes := 2*s.Depth.Rows*s.Mesh.RowBytes() + 4*s.Levels.Points/2
	return exchangeSeconds*float64(exchanges) + float64(bytes)/linkBytes
}

// Idle says in one line how many ranks of a run stay idle, and why; "" if none does.
func Idle(c configs.Config, working int) string {
	if working == c.Working() {
		return c.Idle()
	}
	return fmt.Sprintf("multigrid runs on %d of %d ranks: rows between nodes travel through the hosts, which takes "+
		"longer than more GPUs save (with halo.transport nats or direct, all ranks work)", working, c.Run.Ranks)
}
