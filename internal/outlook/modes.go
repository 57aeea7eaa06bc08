// Package outlook estimates how a run will end, before the run and while it goes on: after how many sweeps, and with
// which error of the solution. It samples the initial field and its boundary, and computes the error of the initial
// field in each of the slowest modes of the iteration. docs/numerics.md compares the estimates with measurements.
package outlook

import (
	"context"
	"math"

	"jacobi/solver"
)

const (
	samples = 64 // largest number of sampled rows, and of sampled columns in each
	waves   = 8  // largest number of half waves of a mode in each direction; of whole waves in a periodic one
)

// Field is the initial field of a run. Every problem.Problem is a Field.
type Field interface {
	Mesh() solver.Mesh
	// Values writes the values of row iy at the columns cols to dst.
	Values(iy int, cols []int, dst []float64) error
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

// axis is one direction of the mesh and its modes.
type axis struct {
	points int   // interior points
	at     []int // sampled points
	waves  []wave
}

// wave is a mode along one axis.
type wave struct {
	cosine float64                 // the axis contributes half of it to 1-lambda
	square float64                 // mean square
	at     func(point int) float64 // value at an interior point, counted from 1
}

// fixedAxis has the modes sin(p pi x), which are 0 at both ends.
func fixedAxis(points int) axis {
	a := axis{points: points, at: spread(points)}
	step := math.Pi / float64(points+1)
	for p := 1; p <= min(waves, points); p++ {
		angle := float64(p) * step
		a.waves = append(a.waves, wave{math.Cos(angle), float64(points+1) / float64(2*points),
			func(i int) float64 { return math.Sin(angle * float64(i)) }})
	}
	return a
}

// periodicAxis has a constant mode and the sines and cosines of whole waves.
func periodicAxis(points int) axis {
	a := axis{points: points, at: spread(points)}
	a.waves = []wave{{1, 1, func(int) float64 { return 1 }}}
	step := 2 * math.Pi / float64(points)
	for q := 1; q <= min(waves, (points-1)/2); q++ {
		angle := float64(q) * step
		middle := float64(points+1) / 2 // sines are odd and cosines even about the middle of the samples
		a.waves = append(a.waves,
			wave{math.Cos(angle), 0.5, func(i int) float64 { return math.Sin(angle * (float64(i) - middle)) }},
			wave{math.Cos(angle), 0.5, func(i int) float64 { return math.Cos(angle * (float64(i) - middle)) }})
	}
	return a
}

// spread returns at most samples of the numbers 1 to n. They are evenly spread and symmetric about the middle, so that
// the means of odd functions are 0.
func spread(n int) []int {
	count := min(n, samples)
	list := make([]int, count)
	for i := range (count + 1) / 2 {
		list[i] = 1 + int((float64(i)+0.5)*float64(n)/float64(count))
		list[count-1-i] = n + 1 - list[i]
	}
	return list
}

// mean returns the mean of values times w over the samples of a.
func (a axis) mean(values []float64, w wave) (sum float64) {
	for i, v := range values {
		sum += v * w.at(a.at[i])
	}
	return sum / float64(len(values))
}

// alternating returns the mean over the interior of values times w with signs that alternate from point to point. For
// smooth values only the ends contribute: half of the product half a step before the first point, and half a step after
// the last one.
func (a axis) alternating(e ends, w wave) float64 {
	n := a.points
	first := 1.5*e[0]*w.at(1) - 0.5*e[1]*w.at(2)
	last := 1.5*e[3]*w.at(n) - 0.5*e[2]*w.at(n-1)
	if n%2 == 1 {
		last = -last
	}
	return (last - first) / float64(2*n)
}

// modesOf returns the slowest modes of the mesh, with their components of the initial error and of the solution.
//
// The solution u satisfies (1-J) u = g, where g is a quarter of the sum of the fixed neighbours of each point. So the
// component of u along a mode is that of g divided by lambda.
func modesOf(ctx context.Context, f Field) ([]mode, error) {
	m := f.Mesh()
	x, y := fixedAxis(m.NX-2), fixedAxis(m.NY-2)
	if m.PeriodicRows() {
		y = periodicAxis(m.NY - 2)
	}
	rows, err := sample(ctx, f, x, y)
	if err != nil {
		return nil, err
	}
	s, err := sidesOf(f, x, y)
	if err != nil {
		return nil, err
	}
	nx, ny := x.points, y.points
	column := make([]float64, len(rows))
	var modes []mode
	for _, p := range x.waves {
		for i, row := range rows {
			column[i] = x.mean(row, p)
		}
		for _, q := range y.waves {
			md := mode{lambda: 1 - (p.cosine+q.cosine)/2, square: p.square * q.square}
			g := (p.at(1)*y.mean(s.left.values, q) + p.at(nx)*y.mean(s.right.values, q)) / float64(4*nx)
			h := (s.left.sign*p.at(1)*y.alternating(s.left.ends, q) +
				s.right.sign*p.at(nx)*y.alternating(s.right.ends, q)) / float64(4*nx)
			if !m.PeriodicRows() {
				g += (q.at(1)*x.mean(s.top.values, p) + q.at(ny)*x.mean(s.bottom.values, p)) / float64(4*ny)
				h += (s.top.sign*q.at(1)*x.alternating(s.top.ends, p) +
					s.bottom.sign*q.at(ny)*x.alternating(s.bottom.ends, p)) / float64(4*ny)
			}
			md.solution = g / md.square / md.lambda
			md.start = y.mean(column, q)/md.square - md.solution
			modes = append(modes, md)
			if !m.PeriodicRows() || ny%2 == 0 {
				partner := mode{lambda: 2 - md.lambda, square: md.square}
				partner.start = -h / md.square / partner.lambda
				modes = append(modes, partner)
			}
		}
	}
	return modes, nil
}
