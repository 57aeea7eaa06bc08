package outlook

import (
	"context"

	"jacobi/solver"
)

const (
	samples = 64 // largest number of sampled rows, and of sampled columns in each
	waves   = 8  // largest number of half waves of a mode in each direction; of whole waves in a periodic one
)

// Field is the initial field of a run, and the operator of its sweeps. Every problem.Problem is a Field.
type Field interface {
	Mesh() solver.Mesh
	Operator() solver.Operator
	// Values writes the values of row iy at the columns cols to dst.
	Values(iy int, cols []int, dst []float64) error
	// SourceValues writes the operator's source in row iy at the columns cols, which sweeps update, to dst.
	SourceValues(iy int, cols []int, dst []float64) error
}

// mode is an eigenvector of the iteration. A sweep multiplies the error's component along it by 1-lambda. Each slow
// mode has a partner that alternates in sign from point to point like a chessboard, and that has 2-lambda for lambda,
// so it falls as slowly.
type mode struct {
	lambda   float64
	square   float64 // mean square of the mode over the interior
	start    float64 // component of the initial field's error along the mode
	solution float64 // component of the solution along the mode
}

// slowness returns the fraction by which the mode shrinks in a sweep.
func (m mode) slowness() float64 { return min(m.lambda, 2-m.lambda) }

// axes returns the two directions of a mesh.
func axes(m solver.Mesh, o solver.Operator) (x, y axis) {
	wx, wy := 0.25, 0.25
	if !o.Plain() {
		wx, wy = o.Scale*(1-o.Blend), o.Scale*o.Blend
	}
	return newAxis(m.NX, m.Walls.Left, m.Walls.Right, wx), newAxis(m.NY, m.Walls.Top, m.Walls.Bottom, wy)
}

// modesOf returns the slowest modes of the mesh, with their components of the initial error and of the solution.
//
// The solution u satisfies (1-J) u = g, where g is the source and, beside a fixed wall, the weight of the wall's point
// times its value. So the component of u along a mode is that of g divided by lambda.
func modesOf(ctx context.Context, f Field) ([]mode, error) {
	x, y := axes(f.Mesh(), f.Operator())
	initial, err := sample(ctx, x, y, f.Values)
	if err != nil {
		return nil, err
	}
	source, err := sampleSource(ctx, f, x, y)
	if err != nil {
		return nil, err
	}
	sides, err := sidesOf(f, x, y)
	if err != nil {
		return nil, err
	}
	var modes []mode
	for _, p := range x.waves {
		start, driven := x.means(initial, p), x.means(source, p)
		for _, q := range y.waves {
			md := mode{lambda: 1 - 2*x.weight*p.cosine - 2*y.weight*q.cosine, square: p.square * q.square}
			if md.lambda <= 0 { // a constant that nothing determines
				continue
			}
			g := y.mean(driven, q)
			h := 0.0
			for _, s := range sides {
				across, along := p, q
				if s.horizontal {
					across, along = q, p
				}
				g += s.factor * across.at(s.beside) * s.axis.mean(s.values, along)
				h += s.factor * chess(s.beside) * across.at(s.beside) * s.axis.alternating(s.ends, along)
			}
			md.solution = g / md.square / md.lambda
			md.start = y.mean(start, q)/md.square - md.solution
			modes = append(modes, md)
			if x.hasPartners() && y.hasPartners() {
				partner := mode{lambda: 2 - md.lambda, square: md.square}
				partner.start = -h / md.square / partner.lambda
				modes = append(modes, partner)
			}
		}
	}
	return modes, nil
}

// means returns the mean of each row times w.
func (a axis) means(rows [][]float64, w wave) []float64 {
	list := make([]float64, len(rows))
	for i, row := range rows {
		list[i] = a.mean(row, w)
	}
	return list
}
