package problem

import (
	"math"

	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// With grid.axis the mesh is half a section through a body of revolution, and the equation is that of the full turn,
// -div(a grad u) + k2 u = f in cylinder coordinates, times the distance r from the axis: a face has its coefficient
// times r in its middle, a square its f and k2 times its own mean r, and a wall what flows in times r along it. So the
// equations stay symmetric. On the axis the half of a square has the mean r hx/4, and nothing flows through the axis.

// turn has the distances of places from the axis. The zero value stands for none: they are 1.
type turn struct {
	on, x   bool // x: r is along x, else along y
	end     float64
	spacing float64
}

// newTurn returns the turn around a side of the mesh; "" is none.
func newTurn(side string, m solver.Mesh, n numbers) turn {
	switch side {
	case "left":
		return turn{true, true, 0, n.hx}
	case "right":
		return turn{true, true, float64(m.NX - 1), n.hx}
	case "top":
		return turn{true, false, 0, n.hy}
	case "bottom":
		return turn{true, false, float64(m.NY - 1), n.hy}
	}
	return turn{}
}

// radius returns r at a place of the plane.
func (t turn) radius(s spot) float64 {
	switch {
	case !t.on:
		return 1
	case t.x:
		return float64(math.Abs(s.x-t.end) * t.spacing)
	}
	return float64(math.Abs(s.y-t.end) * t.spacing)
}

// steps returns how many quarters of a spacing a place is from the axis, which is a whole number for middles of squares
// and of walls; 1 without one.
func (t turn) steps(s spot) int64 {
	if !t.on {
		return 1
	}
	t.spacing = 4
	return int64(t.radius(s))
}

// share returns r at a place over r at another one, the middle of what it belongs to.
func (t turn) share(at, middle spot) float64 {
	if r := t.radius(middle); t.on && r > 0 {
		return t.radius(at) / r
	}
	return 1
}

// middle returns the middle of the square of a point, moved by parts of a spacing.
func (p *Problem) middle(iy, ix int, right, down float64) spot {
	s := spot{x: float64(ix) + right, y: float64(iy) + down}
	if right == 0 {
		s.x = halfway(around(ix, p.mesh.NX, p.mesh.PeriodicColumns()))
	}
	if down == 0 {
		s.y = halfway(around(iy, p.mesh.NY, p.mesh.PeriodicRows()))
	}
	return s
}

// spin multiplies values of row iy by r in the middles of squares or, half a spacing to the right or below, of faces.
func (p *Problem) spin(iy int, right, down float64, dst []float64) {
	for ix := 0; p.turn.on && ix < len(dst); ix++ {
		dst[ix] = float64(dst[ix] * p.turn.radius(p.middle(iy, ix, right, down)))
	}
}

// middleOfWall returns the middle of the part of a wall that belongs to one of its points.
func (p *Problem) middleOfWall(wall, iy, ix int) spot {
	s := p.middle(iy, ix, 0, 0)
	if wall < 2 {
		s.x = float64(ix)
	} else {
		s.y = float64(iy)
	}
	return s
}

// wallRadius returns r there.
func (p *Problem) wallRadius(wall, iy, ix int) float64 {
	return p.turn.radius(p.middleOfWall(wall, iy, ix))
}

// Axis implements results.Problem: the mean length of a turn over the mesh.
func (p *Problem) Axis() (mean float64, ok bool) {
	if !p.turn.on {
		return 1, false
	}
	return 2 * math.Pi * p.turn.radius(p.centre()), true
}

// centre returns the middle of the mesh.
func (p *Problem) centre() spot {
	return spot{x: halfway(0, float64(p.mesh.NX-1)), y: halfway(0, float64(p.mesh.NY-1))}
}

// Turn implements results.Problem.
func (p *Problem) Turn(iy int, at results.Place, dst []float64) {
	if !p.turn.on {
		return
	}
	right, down := 0.0, 0.0
	switch at {
	case results.East:
		right = 0.5
	case results.North:
		down = -0.5
	}
	p.spin(iy, right, down, dst)
	for i := range dst {
		dst[i] *= 2 * math.Pi
	}
}

// TurnOfWall implements results.Problem.
func (p *Problem) TurnOfWall(wall, iy, ix int) float64 {
	if !p.turn.on {
		return 1
	}
	return 2 * math.Pi * p.wallRadius(wall, iy, ix)
}
