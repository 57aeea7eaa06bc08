package solver

// Wall is the condition on one side of a mesh.
type Wall uint8

// The conditions. Their values are part of the wire format.
const (
	Dirichlet Wall = iota // the row or column of the wall keeps its initial values
	Periodic              // the mesh goes on at the opposite wall, which is periodic too
	// Neumann gives the outward normal derivative. The row or column of the wall is swept: the value beyond the wall
	// is that of the mirror point, and the derivative is part of the source (see Operator).
	Neumann
)

// Walls are the conditions on all sides of a mesh. The zero Walls are all fixed. At a corner a fixed wall counts.
type Walls struct{ Left, Right, Top, Bottom Wall }

// WrapRows returns walls with periodic top and bottom if on is set, and fixed ones otherwise. Left and right are fixed.
func WrapRows(on bool) Walls {
	if !on {
		return Walls{}
	}
	return Walls{Top: Periodic, Bottom: Periodic}
}

// PeriodicRows reports whether top and bottom are periodic.
func (m Mesh) PeriodicRows() bool { return m.Walls.Top == Periodic }

// PeriodicColumns reports whether left and right are periodic.
func (m Mesh) PeriodicColumns() bool { return m.Walls.Left == Periodic }

// Interior returns the rows that a sweep updates: all but those of fixed walls, and but the copies of periodic ones.
func (m Mesh) Interior() Stripe {
	return Stripe{first(m.Walls.Top), m.NY - first(m.Walls.Bottom)}
}

// InteriorColumns returns the first column that a sweep updates, and the column after the last one.
func (m Mesh) InteriorColumns() (lo, hi int) { return first(m.Walls.Left), m.NX - first(m.Walls.Right) }

// first returns how many rows or columns lie between the end of the mesh and the first one that a sweep updates.
func first(w Wall) int {
	if w == Neumann {
		return 0
	}
	return 1
}

// FloorDiv returns the largest integer not above a/b, for b > 0.
func FloorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Intervals returns the number of intervals between n points in a direction that begins with the given wall. With
// periodic walls it is also the number of points that a sweep updates.
func Intervals(n int, w Wall) int {
	if w == Periodic {
		return n - 2
	}
	return n - 1
}
