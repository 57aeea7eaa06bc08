package multigrid

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// vcycle does V-cycles with a device and its exchange, in halves.
type vcycle struct {
	device   Device
	exchange Exchange // nil for a rank that holds all levels as a whole
	tail     int      // as in the device's Layout
	watch    *solver.Watch
}

// down does the first half of a cycle, up to the solution on the tail.
func (c *vcycle) down(ctx context.Context) error {
	if err := c.overlap(ctx, 0, Unknowns); err != nil {
		return err
	}
	return c.descend(ctx)
}

// descend does the first half of a cycle with a field whose overlaps are filled.
func (c *vcycle) descend(ctx context.Context) error {
	for l := range c.tail {
		if l > 0 {
			if err := c.overlap(ctx, l, RightSide); err != nil {
				return err
			}
		}
		if err := c.at(solver.StepDown, l, func() error { return c.device.Down(ctx, l) }); err != nil {
			return fmt.Errorf("level %d: %w", l, err)
		}
	}
	if c.exchange != nil {
		if err := c.at(solver.StepGather, c.tail, func() error { return c.exchange.Gather(ctx) }); err != nil {
			return err
		}
	}
	if err := c.at(solver.StepTail, c.tail, func() error { return c.device.Tail(ctx) }); err != nil {
		return fmt.Errorf("level %d: %w", c.tail, err)
	}
	return nil
}

// up does the second half of a cycle.
func (c *vcycle) up(ctx context.Context) error {
	for l := c.tail - 1; l >= 0; l-- {
		if l+1 < c.tail {
			if err := c.overlap(ctx, l+1, Unknowns); err != nil {
				return err
			}
		}
		if err := c.at(solver.StepUp, l, func() error { return c.device.Up(ctx, l) }); err != nil {
			return fmt.Errorf("level %d: %w", l, err)
		}
	}
	return nil
}

// overlap fills the overlaps of a level.
func (c *vcycle) overlap(ctx context.Context, level int, a Array) error {
	if c.exchange == nil {
		return nil
	}
	return c.at(solver.StepOverlap, level, func() error { return c.exchange.Overlap(ctx, level, a) })
}

// at measures f as a step on a level.
func (c *vcycle) at(k solver.StepKind, level int, f func() error) error {
	return c.watch.Do(solver.Step{Kind: k, Level: level}, f)
}
