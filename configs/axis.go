package configs

import "fmt"

// natural is what the side has that is the axis of a body of revolution: nothing flows through it.
const natural = neumann + "(0)"

// axisOf returns the side that grid.axis names, and the name and the value of the opposite one; nil for none.
func (p *Problem) axisOf(axis string) (side *string, opposite namedText) {
	switch axis {
	case "left":
		return &p.Left, namedText{"problem.right", p.Right}
	case "right":
		return &p.Right, namedText{"problem.left", p.Left}
	case "top":
		return &p.Top, namedText{"problem.bottom", p.Bottom}
	case "bottom":
		return &p.Bottom, namedText{"problem.top", p.Top}
	}
	return nil, opposite
}

// CheckAxis refuses an unknown grid.axis, a value on the side that is the axis, and a periodic one opposite it.
func (c Config) CheckAxis() error {
	axis := c.Grid.Axis
	p, err := c.Problem.Resolve(c.Grid.DType)
	if axis == "" || err != nil {
		return nil // Walls reports the error
	}
	side, opposite := p.axisOf(axis)
	switch {
	case side == nil:
		return fmt.Errorf("grid.axis %q: allowed are left, right, top and bottom; empty: none", axis)
	case opposite.text == Periodic:
		return fmt.Errorf("grid.axis %q, %s %q: the side opposite the axis cannot be periodic", axis,
			opposite.key, opposite.text)
	case *side != natural:
		return fmt.Errorf("grid.axis %q, problem.%s %q: the side is the axis, through which nothing flows; it takes "+
			"no value", axis, axis, *side)
	}
	return nil
}
