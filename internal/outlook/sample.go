package outlook

import (
	"context"
	"fmt"
)

// sample returns the values of the interior at the sampled rows of y and columns of x.
func sample(ctx context.Context, f Field, x, y axis) ([][]float64, error) {
	var rows [][]float64
	for _, iy := range y.at {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("sample the problem: %w", context.Cause(ctx))
		}
		row := make([]float64, len(x.at))
		if err := f.Values(iy, x.at, row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// ends holds the values at the first two and the last two points of an axis. On an axis with one point all are equal.
type ends [4]float64

// side is one side of the boundary.
type side struct {
	values []float64 // at the sampled points
	ends   ends
	sign   float64 // sign of the chessboard at the interior neighbour of an even-numbered point of the side
}

// sides holds the four sides; top and bottom are empty if they are periodic.
type sides struct{ left, right, top, bottom side }

// sidesOf samples the sides.
func sidesOf(f Field, x, y axis) (s sides, err error) {
	m := f.Mesh()
	vertical := func(ix int) (side, error) {
		return sideOf(y, ix, func(iy int, v []float64) error { return f.Values(iy, []int{ix}, v) })
	}
	horizontal := func(iy int) (side, error) {
		return sideOf(x, iy, func(ix int, v []float64) error { return f.Values(iy, []int{ix}, v) })
	}
	if s.left, err = vertical(0); err != nil {
		return s, err
	}
	if s.right, err = vertical(m.NX - 1); err != nil || m.PeriodicRows() {
		return s, err
	}
	if s.top, err = horizontal(0); err != nil {
		return s, err
	}
	s.bottom, err = horizontal(m.NY - 1)
	return s, err
}

// sideOf samples the side at place along the other axis: 0 or the last point.
func sideOf(a axis, place int, read func(at int, v []float64) error) (side, error) {
	var err error
	value := func(at int) float64 {
		var v [1]float64
		if e := read(at, v[:]); err == nil {
			err = e
		}
		return v[0]
	}
	n := a.points
	s := side{ends: ends{value(1), value(min(2, n)), value(max(1, n-1)), value(n)}, sign: -1}
	for _, at := range a.at {
		s.values = append(s.values, value(at))
	}
	if place > 0 && (place-1)%2 == 0 {
		s.sign = 1
	}
	return s, err
}
