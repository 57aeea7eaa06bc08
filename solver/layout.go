package solver

import "fmt"

// Layout describes what a backend holds: rows [Stripe.Lo-Depth, Stripe.Hi+Depth) of the mesh, without those that do not
// exist (Mesh.Canonical), in two fields called now and next.
type Layout struct {
	Mesh      Mesh
	Stripe    Stripe
	Depth     int       // rows in a halo, >= 1
	MaxSweeps int       // in a pass; 0: as many as the backend does
	Neighbour [2]bool   // by Side: the rows beyond belong to a rank (perhaps this one), not to the boundary
	Magnitude Magnitude // for the unit of Sums
	Operator  Operator  // the update of a point
	Norms     Cadence   // which sweeps have a norm
}

// Check returns an error for a layout that no run can have.
func (l Layout) Check() error {
	m, s, interior := l.Mesh, l.Stripe, l.Mesh.Interior()
	switch {
	case m.NX < 3 || m.NY < 3:
		return fmt.Errorf("mesh %d x %d: at least 3 x 3 is needed", m.NX, m.NY)
	case m.DType != Float32 && m.DType != Float64:
		return fmt.Errorf("%v: allowed are float32 and float64", m.DType)
	case l.Depth < 1:
		return fmt.Errorf("halo depth %d: at least 1 is needed", l.Depth)
	case s.Lo < interior.Lo || s.Hi > interior.Hi || s.Rows() < l.Depth:
		return fmt.Errorf("stripe %v: it must lie in %v and hold at least %d rows", s, interior, l.Depth)
	case s.Lo != interior.Lo && s.Lo%GroupRows != 0 || s.Hi != interior.Hi && s.Hi%GroupRows != 0:
		return fmt.Errorf("stripe %v: it must begin and end at multiples of %d or where the interior does", s,
			GroupRows)
	case !l.Neighbour[Top] && (s.Lo != interior.Lo || m.PeriodicRows()),
		!l.Neighbour[Bottom] && (s.Hi != interior.Hi || m.PeriodicRows()):
		return fmt.Errorf("stripe %v: the mesh goes on beyond a side without neighbour", s)
	}
	if l.Norms.First < 0 || l.Norms.Stride < 0 {
		return fmt.Errorf("norms %+v: no number may be negative", l.Norms)
	}
	return l.Operator.Check(m.DType)
}

// CheckPass returns an error for a pass of more than maxSweeps sweeps or one that reads beyond the halo.
func (l Layout) CheckPass(p Pass, maxSweeps int) error {
	halo := l.Neighbour[Top] || l.Neighbour[Bottom]
	if p.Sweeps < 1 || p.Sweeps > maxSweeps || p.Margin < 0 || halo && p.Sweeps+p.Margin > l.Depth {
		return fmt.Errorf(
			"pass of %d sweeps with margin %d: at most %d sweeps, and with the margin at most the halo's %d rows",
			p.Sweeps, p.Margin, maxSweeps, l.Depth)
	}
	return nil
}

// CheckCopy returns an error unless the rows s lie in the stripe and have n bytes.
func (l Layout) CheckCopy(s Stripe, n int) error {
	if s.Lo < l.Stripe.Lo || s.Hi > l.Stripe.Hi || s.Lo > s.Hi {
		return fmt.Errorf("rows %v: the stripe is %v", s, l.Stripe)
	}
	return l.checkBytes(s, n)
}

// CheckSide returns an error unless there is a neighbour at a side, whose halo has n bytes.
func (l Layout) CheckSide(side Side, n int) error {
	if side > Bottom || !l.Neighbour[side] {
		return fmt.Errorf("%v side: there is no neighbour", side)
	}
	return l.checkBytes(l.Halo(side), n)
}

func (l Layout) checkBytes(s Stripe, n int) error {
	if want := s.Rows() * l.Mesh.RowBytes(); n != want {
		return fmt.Errorf("%d bytes for %d rows, which have %d", n, s.Rows(), want)
	}
	return nil
}

// HaloBytes returns the size of a halo at each side, as HaloRows has it.
func (l Layout) HaloBytes() (bytes [2]int) {
	for side, has := range l.Neighbour {
		if has {
			bytes[side] = l.Depth * l.Mesh.RowBytes()
		}
	}
	return bytes
}

// Held returns the rows that a rank holds: its stripe and, on each side, the halo or the row of a fixed wall.
func (l Layout) Held() Stripe {
	held := Stripe{l.Stripe.Lo - first(l.Mesh.Walls.Top), l.Stripe.Hi + first(l.Mesh.Walls.Bottom)}
	if l.Neighbour[Top] {
		held.Lo = l.Stripe.Lo - l.Depth
	}
	if l.Neighbour[Bottom] {
		held.Hi = l.Stripe.Hi + l.Depth
	}
	return held
}

// Reach returns the rows that a pass with the given margin computes.
func (l Layout) Reach(margin int) Stripe { return l.Stripe.Reach(margin, l.Neighbour) }

// Middle returns the rows of the stripe outside its edges. Toward a neighbour it is cut back to a multiple of
// GroupRows. If no rows are left, it is an empty range at the end of the stripe.
func (l Layout) Middle() Stripe {
	middle := l.Stripe
	if l.Neighbour[Top] {
		middle.Lo = (l.Stripe.Lo + l.Depth + GroupRows - 1) / GroupRows * GroupRows
	}
	if l.Neighbour[Bottom] {
		middle.Hi = (l.Stripe.Hi - l.Depth) / GroupRows * GroupRows
	}
	if middle.Rows() <= 0 {
		return Stripe{l.Stripe.Hi, l.Stripe.Hi}
	}
	return middle
}

// Edge returns the rows of the stripe that fill the halo of the neighbour on a side.
func (l Layout) Edge(side Side) Stripe { return l.Stripe.Edge(side, l.Depth) }

// Halo returns the halo rows beyond a side.
func (l Layout) Halo(side Side) Stripe { return l.Stripe.Beyond(side, l.Depth) }
