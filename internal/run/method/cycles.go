package method

import (
	"context"
	"fmt"

	"jacobi/cuda"
	"jacobi/internal/base/awake"
	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/cpu/levels"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// cycles is multigrid.
type cycles struct {
	multigrid.Device
	Facts
	o           Options
	grid        multigrid.Grid      // the finest mesh; its Exchange is nil for a rank that is alone
	gpu         *cuda.Levels        // Device, if that is a *cuda.Levels
	gpuExchange *cuda.LevelExchange // the exchange, if that is a *cuda.LevelExchange
	cg          multigrid.CG        // nil unless the cycles may be accelerated
	aggregates  int                 // what Begin was given
	iteration   *multigrid.Iteration
}

func openCycles(ctx context.Context, o Options) (*cycles, error) {
	l := o.LevelLayout(o.Rank)
	l.Magnitude = o.Layout.Magnitude
	if rows := o.Operator.Fixed; rows != nil {
		var err error
		if l.Fixed, err = fixedPoints(ctx, o, rows); err != nil {
			return nil, err
		}
	}
	if op := o.Operator; op.Weighted && !op.Loose {
		l.Lever = multigrid.NewLever(l.Plan)
	}
	c := &cycles{o: o}
	if err := c.open(l); err != nil {
		return nil, err
	}
	c.grid = multigrid.Grid{Device: c.Device, Layout: l, Stripes: o.Levels.Stripes, Rank: o.Rank,
		Room: o.Room}
	c.Correction = func(ctx context.Context) (changes accuracy.Changes, err error) {
		if c.iteration != nil && c.iteration.Accelerated() {
			if changes.Last, err = multigrid.Change(ctx, c.cg, l); err != nil {
				return changes, err
			}
		}
		now := c.grid.Layout
		if c.iteration != nil { // it may have gone over to aggregates
			now = c.iteration.Layout
		}
		changes.Next, err = multigrid.Correction(ctx, c.Device, now)
		return changes, err
	}
	c.Rounding = func() (lever *multigrid.Lever, shown bool) {
		switch {
		case c.Aggregates() > 0: // they take their residuals from differences
			return nil, true
		case !l.Lever.Ready():
			return nil, false
		}
		return l.Lever, false
	}
	return c, nil
}

// open opens the device.
func (c *cycles) open(l multigrid.Layout) error {
	if c.o.Driver == nil {
		d, err := levels.New(l, c.o.CPU.Threads, c.o.CPU.Kernel)
		if err != nil {
			return err
		}
		c.o.OnClose(d.Close)
		c.Device, c.Facts = d, Facts{Device: d.Describe(), Kernel: d.Kernel()}
		if c.o.MayAccelerate() {
			c.cg = levels.NewCG(d)
		}
		return nil
	}
	d, err := cuda.NewLevels(c.o.Driver, l, c.o.GPU)
	if err != nil {
		return err
	}
	c.o.OnClose(d.Close)
	c.Device, c.gpu, c.Facts = d, d, Facts{Device: d.Describe(), GPU: d}
	if c.o.MayAccelerate() {
		s, err := cuda.NewCG(d)
		if err != nil {
			return err
		}
		c.cg = s
	}
	return nil
}

// CopyRows implements Method.
func (c *cycles) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	return c.Device.CopyRows(ctx, 0, multigrid.Unknowns, s, dst)
}

// Begin implements Method. It sets up the levels of a weighted operator, or its aggregates. Conjugate gradients go on
// with a direction.
func (c *cycles) Begin(ctx context.Context, direction solver.RowSource, aggregates int) error {
	var err error
	if c.aggregates = aggregates; aggregates > 0 {
		c.grid, err = c.grid.Aggregate(ctx)
	} else {
		err = c.grid.SetUp(ctx)
	}
	if err != nil {
		return err
	}
	if c.cg != nil {
		if err := c.cg.Load(ctx, direction); err != nil {
			return err
		}
	}
	return nil
}

// State implements Method: the field and, where conjugate gradients may begin, their direction.
func (c *cycles) State() (rows solver.Rows, arrays int) {
	if c.cg == nil {
		return c, 0
	}
	return state{c}, 2
}

// state reads the field and the direction.
type state struct{ *cycles }

// CopyRows implements solver.Rows.
func (c state) CopyRows(ctx context.Context, s solver.Stripe, dst []byte) error {
	if err := c.cycles.CopyRows(ctx, s, dst[:len(dst)/2]); err != nil {
		return err
	}
	return c.cg.CopyRows(ctx, s, dst[len(dst)/2:])
}

// Aggregates implements Method.
func (c *cycles) Aggregates() int {
	if c.iteration == nil {
		return c.aggregates
	}
	return c.iteration.AggregatesAfter
}

// FirstSum implements Method.
func (c *cycles) FirstSum(ctx context.Context) (solver.Sum, error) {
	if err := c.Down(ctx, 0); err != nil {
		return solver.Sum{}, err
	}
	return c.Sum(ctx)
}

// Connect implements Method.
func (c *cycles) Connect(links [2]solver.RowLink, neighbours [2]*cuda.Window, all []*cuda.Window) error {
	if c.o.Ranks == 1 {
		return nil
	}
	host := solver.NewHostExchange(links, solver.HostOptions{Rank: c.o.Rank, Most: multigrid.HaloDepth *
		c.grid.Layout.Plan.Levels[0].Mesh.RowBytes()})
	c.grid.Exchange = host
	if neighbours == [2]*cuda.Window{} && len(all) == 0 {
		return nil
	}
	x, err := cuda.NewLevelExchange(c.gpu, host, c.o.Rank, neighbours, all, c.o.GPU.Sole)
	if err != nil {
		return err
	}
	c.o.OnClose(x.Close)
	c.grid.Exchange, c.gpuExchange = x, x
	return nil
}

// PeerTraffic implements Method. Rows of several levels go at other times than exchanges are counted.
func (c *cycles) PeerTraffic(_, _ uint64) Traffic {
	exchanges, sent := c.gpuExchange.Traffic()
	return Traffic{Exchanges: exchanges, Sent: sent, Received: sent}
}

// Iteration implements Method.
func (c *cycles) Iteration(start int, _ solver.RowSource, sums *solver.Reductions) (solver.Iteration, error) {
	o := multigrid.Options{Cycles: start, CG: c.cg, AggregatesAfter: c.aggregates}
	if c.gpuExchange != nil {
		o.Drain = c.gpuExchange.Drain // the other ranks' memory goes when they end
	}
	c.iteration = multigrid.New(c.grid, sums, o)
	return c.iteration, nil
}

// Memory implements Method.
func (c *cycles) Memory() int64 {
	if c.cg == nil {
		return c.Bytes()
	}
	return c.Bytes() + c.cg.Bytes()
}

// fixedPoints returns the fixed points inside the mesh. Every rank needs all of them, so that each reads the rows of
// its stripe and the ranks exchange them. Where that takes more than a message, each reads all rows.
func fixedPoints(ctx context.Context, o Options, rows solver.FixedRows) (multigrid.FixedRuns, error) {
	mesh, interior, own := o.Layout.Mesh, o.Layout.Mesh.Interior(), o.Layout.Stripe
	if o.Ranks == 1 {
		return multigrid.FixedPoints(mesh, rows)
	}
	finest := make(multigrid.FixedRuns, mesh.NY)
	for _, s := range []solver.Stripe{own, {Hi: interior.Lo}, {Lo: interior.Hi, Hi: mesh.NY}} {
		if err := finest.Read(mesh, rows, s); err != nil {
			return nil, err
		}
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Timeout)
	defer cancel()
	whole, err := o.Comm.Pool(ctx, "fixed points", finest.Encode(own))
	if err != nil {
		return nil, err
	}
	if len(whole) == 0 {
		return multigrid.FixedPoints(mesh, rows)
	}
	if err := finest.Decode(whole, interior, mesh.NX); err != nil {
		return nil, fmt.Errorf("rank %d: %w", o.Rank, err)
	}
	return finest, nil
}
