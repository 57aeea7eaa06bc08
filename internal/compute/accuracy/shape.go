package accuracy

import (
	"math"

	"jacobi/solver"
)

// side is the largest number of blocks along a direction.
const side = 32

// shape divides the points that a sweep updates into blocks.
type shape struct {
	mesh          solver.Mesh
	lo, hi        int             // columns
	rows, columns []solver.Stripe // of blocks
	inward        []float64       // of each column; see share
}

func newShape(m solver.Mesh) shape {
	s := shape{mesh: m}
	s.lo, s.hi = m.InteriorColumns()
	s.rows, s.columns = divide(m.Interior()), divide(solver.Stripe{Lo: s.lo, Hi: s.hi})
	s.inward = make([]float64, m.NX)
	for ix := s.lo; ix < s.hi; ix++ {
		s.inward[ix] = share(s.columns, m.Walls.Left, m.Walls.Right, ix)
	}
	return s
}

// share returns the part of the defect at place i that moves the centre of its block. Beside a fixed wall the rest goes
// to the wall, as in the solution along a line: in proportion to the distance from the wall.
func share(parts []solver.Stripe, before, after solver.Wall, i int) float64 {
	part := 1.0
	if first := parts[0]; before == solver.Dirichlet {
		part = min(part, float64(i-first.Lo+1)/(float64(first.Rows()+1)/2))
	}
	if last := parts[len(parts)-1]; after == solver.Dirichlet {
		part = min(part, float64(last.Hi-i)/(float64(last.Rows()+1)/2))
	}
	return part
}

// down returns the share of row iy.
func (s shape) down(iy int) float64 {
	iy, _ = s.mesh.Canonical(iy)
	return share(s.rows, s.mesh.Walls.Top, s.mesh.Walls.Bottom, iy)
}

// divide cuts a range into at most side parts.
func divide(all solver.Stripe) (parts []solver.Stripe) {
	n := min(side, all.Rows())
	for i := range n {
		parts = append(parts, solver.Stripe{Lo: all.Lo + i*all.Rows()/n, Hi: all.Lo + (i+1)*all.Rows()/n})
	}
	return parts
}

func (s shape) blocks() int { return len(s.rows) * len(s.columns) }

// row returns the row of blocks that has row iy of the mesh; false for a row of a fixed wall.
func (s shape) row(iy int) (int, bool) {
	iy, _ = s.mesh.Canonical(iy)
	all := s.mesh.Interior()
	if iy < all.Lo || iy >= all.Hi {
		return 0, false
	}
	i := (iy - all.Lo) * len(s.rows) / all.Rows()
	for iy >= s.rows[i].Hi { // divide rounds down
		i++
	}
	return i, true
}

// at returns the block of column i of blocks in row iy of the mesh, which is swept.
func (s shape) at(iy, i int) int {
	row, _ := s.row(iy)
	return row*len(s.columns) + i
}

// spread is the resistance between the points of a block and a point in it, in units of the coupling: that of a plane,
// ln(k)/(2 pi) for k points.
func spread(points int) float64 { return math.Log(float64(points)) / (2 * math.Pi) }

// system is the defect equation on the blocks.
type system struct {
	shape
	right, down []float64 // couplings with the next block, around a periodic direction
	hold        []float64 // what pulls a block to 0: walls, fixed points and screening
	defect      []float64
	free        []int64 // points; a block without one stays 0
}

// newSystem returns the equation for the parts of all ranks.
func newSystem(m solver.Mesh, o solver.Operator, p Part) *system {
	o = o.General()
	s := &system{shape: newShape(m)}
	n := s.blocks()
	s.right, s.down, s.hold, s.defect = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	wx, wy := o.Scale*(1-o.Blend), o.Scale*o.Blend
	s.free = p.Free
	for j, row := range s.rows {
		tall := extent(m.Walls.Top, m.Walls.Bottom, row, m.NY)
		for i, column := range s.columns {
			at := j*len(s.columns) + i
			wide := extent(m.Walls.Left, m.Walls.Right, column, m.NX)
			s.defect[at] = p.Defects[at].Value()
			s.hold[at] = (1 - 2*o.Scale) * tall * wide
			s.right[at] = s.couple(&s.hold[at], wx*tall, s.columns, i, m.Walls.Left, m.Walls.Right)
			s.down[at] = s.couple(&s.hold[at], wy*wide, s.rows, j, m.Walls.Top, m.Walls.Bottom)
			if g := (wx*float64(p.Grounds[at][0]) + wy*float64(p.Grounds[at][1])) / 2; g > 0 {
				s.hold[at] += 1 / (1/g + spread(max(row.Rows(), column.Rows()))/math.Sqrt(wx*wy))
			}
		}
	}
	return s
}

// extent returns the points of a range, those on Neumann walls counting half.
func extent(before, after solver.Wall, r solver.Stripe, n int) (points float64) {
	for i := r.Lo; i < r.Hi; i++ {
		points += half(before, after, i, n)
	}
	return points
}

// couple returns the coupling of part i of parts with the next one, 0 if there is none, and adds that with fixed walls
// to hold. weight is that of neighbouring points, over the whole face.
func (s *system) couple(hold *float64, weight float64, parts []solver.Stripe, i int,
	before, after solver.Wall) float64 {
	size, last := float64(parts[i].Rows()), i == len(parts)-1
	if i == 0 && before == solver.Dirichlet {
		*hold += weight / ((size + 1) / 2)
	}
	switch {
	case last && after == solver.Dirichlet:
		*hold += weight / ((size + 1) / 2)
		return 0
	case last && (after == solver.Neumann || len(parts) == 1):
		return 0
	}
	return weight / ((size + float64(parts[(i+1)%len(parts)].Rows())) / 2)
}

// Correction returns the largest error that the blocks have.
func (r Run) Correction(p Part) float64 {
	s := newSystem(r.Mesh, r.Operator, p)
	largest := 0.0
	for _, v := range s.solve() {
		largest = max(largest, math.Abs(v))
	}
	return largest
}
