package rank

import (
	"context"
	"fmt"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/cpu"
	"jacobi/internal/roster"
	"jacobi/internal/soak"
	"jacobi/solver"
)

// soakField is a field that a soak sweeps: the whole mesh on this rank alone, or this rank's stripe of it.
type soakField struct {
	kind    soak.Kind
	layout  solver.Layout
	backend solver.Backend
	engine  *solver.Engine
}

// soakField returns the field of this rank's stripe.
func (w *wired) soakField(kind soak.Kind) (*soakField, error) {
	return newSoakField(kind, w.plan, w.backend, w.exchange)
}

func newSoakField(kind soak.Kind, p plan, b solver.Backend, x solver.Exchange) (*soakField, error) {
	e, err := solver.NewEngine(b, x, solver.EngineOptions{Depth: p.layout.Depth, MaxSweeps: p.passSweeps})
	if err != nil {
		return nil, err
	}
	return &soakField{kind: kind, layout: p.layout, backend: b, engine: e}, nil
}

// planAlone returns the plan of the whole mesh on one rank, with passes of at most most sweeps and, unless the
// configuration says otherwise, halos of the given depth.
func (l *laidOut) planAlone(depth, most int) (plan, error) {
	mesh := l.layout.Mesh
	if d := l.Config.Halo.Depth; d > 0 {
		depth = d
	}
	p, err := newPlan(mesh, haloDepth{Rows: depth, Sweeps: min(depth, most)}, nil,
		roster.Identity{Size: 1}, []roster.Group{{First: roster.Member{MaxSweeps: most}, End: 1}})
	p.layout.Operator, p.layout.Magnitude = l.layout.Operator, l.layout.Magnitude
	return p, err
}

// ownLinks links this rank with itself for a plan of one rank, as a mesh with periodic rows needs.
func (l *laidOut) ownLinks(ctx context.Context, p plan, open *closers) (*halo.Links, error) {
	links, err := halo.Connect(ctx, halo.Options{
		Ends: halo.Ends(halo.RunIDOf(l.id.RunID), p.layout.Mesh, p.stripes, p.layout.Depth, 0),
		Mode: halo.ModeAuto,
		NATS: halo.NATSOptions{Timeout: l.Config.Halo.Timeout},
	})
	if err == nil {
		open.add(links.Close)
	}
	return links, err
}

// openAlone opens the field of the whole mesh on this rank's device, beside that of the stripe.
func (o *opened) openAlone(ctx context.Context, open *closers) (f *soakField, err error) {
	if o.sweepsOnGPU() {
		f, err = o.openAloneOnGPU(ctx, open)
	} else {
		f, err = o.openAloneOnCPU(ctx, cpu.Options{Threads: o.threads(), Kernel: o.cpuKernel(),
			ThreadsPerCore: o.threadsPerCore()}, open)
	}
	if err != nil {
		return nil, fmt.Errorf("the whole mesh: %w", err)
	}
	return f, nil
}

func (o *opened) openAloneOnGPU(ctx context.Context, open *closers) (*soakField, error) {
	mesh := o.layout.Mesh
	p, err := o.planAlone(cuda.PreferredDepth(mesh, mesh.Interior().Rows(), 1), cuda.MaxSweeps(mesh))
	if err != nil {
		return nil, err
	}
	links, err := o.ownLinks(ctx, p, open)
	if err != nil {
		return nil, err
	}
	b, err := cuda.New(o.gpus.Driver, p.layout,
		cuda.Options{Device: o.chosen.Index, Sole: o.sole, Timeout: o.Config.Halo.Timeout})
	if err != nil {
		return nil, err
	}
	open.add(b.Close)
	x, err := cuda.NewExchange(b, true, [2]*cuda.Peer{}, links.Rows())
	if err != nil {
		return nil, err
	}
	open.add(x.Close)
	return newSoakField(soak.Alone, p, b, x)
}

func (l *laidOut) openAloneOnCPU(ctx context.Context, c cpu.Options, open *closers) (*soakField, error) {
	mesh := l.layout.Mesh
	p, err := l.planAlone(cpu.PreferredDepth(mesh, mesh.Interior().Rows()), cpu.MaxSweeps(mesh))
	if err != nil {
		return nil, err
	}
	links, err := l.ownLinks(ctx, p, open)
	if err != nil {
		return nil, err
	}
	b, err := cpu.New(p.layout, c)
	if err != nil {
		return nil, err
	}
	open.add(b.Close)
	x, err := solver.NewHostExchange(b, p.layout, links.Rows())
	if err != nil {
		return nil, err
	}
	return newSoakField(soak.Alone, p, b, x)
}

// sweep does the given number of sweeps from initial. It calls before with the sweeps done before each pass, and gives
// up, with false, where that returns true. All ranks of a ring must go on alike.
func (f *soakField) sweep(ctx context.Context, initial solver.RowSource, sweeps int, before func(sweeps int) bool) (
	bool, error) {
	if err := f.engine.Reload(ctx, initial); err != nil {
		return false, err
	}
	lag := f.backend.Limits().Lag
	var swept []solver.Pass // whose sums were not taken; they bound the passes that wait on a device
	take := func(keep int) error {
		for len(swept) > keep {
			if _, err := f.backend.Sums(ctx, swept[0]); err != nil {
				return fmt.Errorf("sweep %d: %w", swept[0].First, err)
			}
			swept = append(swept[:0], swept[1:]...)
		}
		return nil
	}
	for f.engine.Sweeps() < sweeps {
		if before(f.engine.Sweeps()) {
			return false, take(0)
		}
		p, err := f.engine.Advance(ctx, sweeps)
		if err != nil {
			return false, err
		}
		swept = append(swept, p)
		if err := take(lag); err != nil {
			return false, err
		}
	}
	return true, take(0)
}
