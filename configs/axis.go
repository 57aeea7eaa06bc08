package configs

import "fmt"

// natural is what the side has that is the axis of a body of revolution: nothing flows through it.
const natural = neumann + "(0)"

// axisOf returns the side that grid.axis names, and the opposite one; nil for none.
func (p *Problem) axisOf(axis string) (side, opposite *string) {
	switch axis {
	case "left":
		return &p.Left, &p.Right
	case "right":
		return &p.Right, &p.Left
	case "top":
		return &p.Top, &p.Bottom
	case "bottom":
		return &p.Bottom, &p.Top
	}
	return nil, nil
}

// CheckAxis refuses an unknown grid.axis, a value on the side that is the axis, and periodic sides across it.
func (c Config) CheckAxis() error {
	axis := c.Grid.Axis
	p, err := c.Problem.Resolve(c.Grid.DType)
	if axis == "" || err != nil {
		return nil // Walls reports the error
	}
	side, opposite := p.axisOf(axis)
	if side == nil {
		return fmt.Errorf("grid.axis %q: allowed are left, right, top and bottom; empty: none", axis)
	}
	if *opposite == Periodic {
		return fmt.Errorf("grid.axis %q: the side opposite to it is periodic; it can have any other value", axis)
	}
	if *side != natural {
		return fmt.Errorf("grid.axis %q, problem.%s %q: the side is the axis, through which nothing flows; it takes no "+
			"value", axis, axis, *side)
	}
	return nil
}
