package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/run/setup"
	"jacobi/internal/tools/soak"
	"jacobi/solver"
	"jacobi/solver/jacobi"
)

// field is a field that a soak sweeps: the whole mesh on this rank alone, or this rank's stripe of it.
type field struct {
	kind    soak.Kind
	layout  solver.Layout
	backend solver.Backend
	engine  *jacobi.Engine
	closes  []func() error // what was opened for it, in that order
}

func newField(kind soak.Kind, l solver.Layout, sweeps int, b solver.Backend, x solver.Exchange) (*field, error) {
	e, err := jacobi.NewEngine(b, x, jacobi.EngineOptions{Depth: l.Depth, MaxSweeps: sweeps})
	if err != nil {
		return nil, err
	}
	return &field{kind: kind, layout: l, backend: b, engine: e}, nil
}

// close closes what was opened for the field, the newest first.
func (f *field) close() error { return closeAll(f.closes) }

func closeAll(closes []func() error) error {
	var errs []error
	for _, f := range slices.Backward(closes) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// layoutAlone returns the layout of the whole mesh on one rank and the most sweeps of a pass, which are at most most,
// with halos of the given depth unless the configuration says otherwise.
func (s *soaking) layoutAlone(depth, most int) (solver.Layout, int, error) {
	if d := s.Config.Halo.Depth; d > 0 {
		depth = d
	}
	alone, err := setup.New(setup.Options{Mesh: s.Layout.Mesh, Operator: s.Layout.Operator, Ranks: 1, MaxSweeps: most,
		Depth: setup.Depth{Rows: depth, Sweeps: depth}})
	if err != nil {
		return solver.Layout{}, 0, err
	}
	whole := alone.Layout(0)
	whole.Magnitude = s.Layout.Magnitude
	return whole, alone.Sweeps, nil
}

// openAlone opens the field of the whole mesh on this rank's GPU or, with the given options, on the CPU.
func (s *soaking) openAlone(ctx context.Context, onGPU bool, c cpu.Options) (f *field, err error) {
	var closes []func() error
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(closes))
		}
	}()
	mesh := s.Layout.Mesh
	depth, most := cpu.PreferredDepth(mesh, mesh.Interior().Rows()), cpu.MaxSweeps(mesh)
	if onGPU {
		depth, most = cuda.PreferredDepth(mesh, s.Layout.Operator, mesh.Interior().Rows(), 1),
			cuda.MaxSweeps(mesh)
	}
	whole, sweeps, err := s.layoutAlone(depth, most)
	if err != nil {
		return nil, err
	}
	links, err := halo.Connect(ctx, halo.Options{ // with itself, as a mesh with periodic rows needs
		Ends: halo.Ends(halo.RunIDOf(s.Comm.Self().RunID), mesh, []solver.Stripe{whole.Stripe}, whole.Depth, 0),
		Mode: halo.ModeAuto,
		NATS: halo.NATSOptions{Timeout: s.Config.Halo.Timeout},
	})
	if err != nil {
		return nil, err
	}
	closes = append(closes, links.Close)
	var b interface {
		solver.Backend
		Close() error
	}
	if onGPU {
		b, err = cuda.New(s.Driver, whole,
			cuda.Options{Device: s.GPU.Index, Sole: s.Sole, Timeout: s.Config.Halo.Timeout})
	} else {
		b, err = cpu.New(whole, c)
	}
	if err != nil {
		return nil, err
	}
	closes = append(closes, b.Close)
	x, closeExchange, err := openExchange(b, links)
	if err != nil {
		return nil, err
	}
	closes = append(closes, closeExchange)
	if f, err = newField(soak.Alone, whole, sweeps, b, x); err != nil {
		return nil, err
	}
	f.closes = closes
	return f, nil
}

// openExchange opens the exchange of a rank with itself.
func openExchange(b solver.Backend, links *halo.Links) (solver.Exchange, func() error, error) {
	if g, ok := b.(*cuda.Backend); ok {
		x, err := cuda.NewExchange(g, true, [2]*cuda.Window{}, links.Rows())
		if err != nil {
			return nil, nil, err
		}
		return x, x.Close, nil
	}
	return solver.NewHostExchange(links.Rows(), solver.HostOptions{}), func() error { return nil }, nil
}

// sweep does the given number of sweeps from initial. It calls before with the sweeps done before each pass, and gives
// up, with false, where that returns true. All ranks of a ring must go on alike.
func (f *field) sweep(ctx context.Context, initial solver.RowSource, sweeps int, before func(sweeps int) bool) (
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
	for f.engine.Done() < sweeps {
		if before(f.engine.Done()) {
			return false, take(0)
		}
		p, err := f.engine.Advance(ctx, sweeps, sweeps)
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
