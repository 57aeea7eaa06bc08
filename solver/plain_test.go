package solver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"jacobi/internal/compute/cpu"
	"jacobi/solver"
)

// plain is a backend in plain Go that counts calls and returns an error for those that are out of order.
type plain struct {
	solver.Backend
	layout solver.Layout
	limits solver.Limits
	last   string      // the newest call that changed the fields
	pass   solver.Pass // the newest one
	sums   map[uint64][]solver.Sum
	undone int
	loaded int
	swept  int // sweeps done, replays included

	damageAt         int // sweep whose sum is not a number; 0 for none
	exaggerateBefore int // sweeps before this one report a sum far larger than a sweep can make
}

// newPlain returns a backend, which the caller may close before the test ends.
func newPlain(t *testing.T, l solver.Layout, limits solver.Limits) *plain {
	t.Helper()
	b, err := cpu.New(l, cpu.Options{Threads: 1, Kernel: "portable"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return &plain{Backend: b, layout: l, limits: limits, sums: map[uint64][]solver.Sum{}}
}

// order returns an error unless a call may follow the newest one that changed the fields, as solver.Sweeper says.
func (p *plain) order(call string, after ...string) error {
	if !slices.Contains(after, p.last) {
		return fmt.Errorf("%s after %q, allowed is %q", call, p.last, after)
	}
	return nil
}

// begin returns an error unless the call may begin or end pass b.
func (p *plain) begin(call string, b solver.Pass, after ...string) error {
	return errors.Join(p.order(call, after...), p.layout.CheckPass(b, p.limits.MaxSweeps))
}

func (p *plain) Load(ctx context.Context, rows solver.RowSource) error {
	p.loaded++
	p.last = "Load"
	return p.Backend.Load(ctx, rows)
}

func (p *plain) Edges(ctx context.Context, b solver.Pass) error {
	if b.Margin != 0 {
		return fmt.Errorf("edges of pass %+v, whose margin is not 0", b)
	}
	if err := p.begin("Edges", b, "Load", "Interior", "Undo"); err != nil {
		return err
	}
	p.last, p.pass = "Edges", b
	return p.Backend.Edges(ctx, b)
}

func (p *plain) CopyEdge(ctx context.Context, side solver.Side, dst []byte) error {
	return errors.Join(p.order("CopyEdge", "Edges"), p.Backend.CopyEdge(ctx, side, dst))
}

func (p *plain) Interior(ctx context.Context, b solver.Pass) error {
	if p.last == "Edges" && b != p.pass {
		return fmt.Errorf("interior of pass %+v after edges of pass %+v", b, p.pass)
	}
	if err := p.begin("Interior", b, "Load", "Edges", "Interior", "Undo"); err != nil {
		return err
	}
	if err := p.Backend.Interior(ctx, b); err != nil {
		return err
	}
	p.swept += b.Sweeps
	p.last, p.pass = "Interior", b
	sums, err := p.Backend.Sums(ctx, b)
	sums = slices.Clone(sums)
	for i := range sums {
		first, _ := p.layout.Norms.Of(b)
		sweep := first + i*max(1, p.layout.Norms.Stride)
		sums[i].Bad = p.damageAt > 0 && sweep == p.damageAt
		if sweep < p.exaggerateBefore {
			exaggerate(&sums[i])
		}
	}
	p.sums[b.Index] = sums
	return err
}

// exaggerate makes sum larger than any sweep could.
func exaggerate(sum *solver.Sum) { sum.AddScaled(1<<40, 120) }

func (p *plain) SetHalo(ctx context.Context, side solver.Side, src []byte) error {
	return errors.Join(p.order("SetHalo", "Interior"), p.Backend.SetHalo(ctx, side, src))
}

func (p *plain) Sums(_ context.Context, b solver.Pass) ([]solver.Sum, error) {
	if b.Index > p.pass.Index || b.Index+uint64(p.limits.Lag) < p.pass.Index {
		return nil, fmt.Errorf("sums of pass %d after pass %d, with a lag of %d", b.Index, p.pass.Index, p.limits.Lag)
	}
	return p.sums[b.Index], p.order("Sums", "Interior")
}

func (p *plain) Undo() error {
	if err := p.order("Undo", "Interior"); err != nil {
		return err
	}
	p.undone++
	p.last = "Undo"
	return p.Backend.Undo()
}

func (p *plain) Limits() solver.Limits { return p.limits }
