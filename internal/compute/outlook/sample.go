package outlook

import (
	"context"
	"fmt"

	"jacobi/solver"
)

// sample returns what read yields at the sampled rows of y and columns of x.
func sample(ctx context.Context, x, y axis, read func(iy int, cols []int, dst []float64) error) ([][]float64, error) {
	var rows [][]float64
	for _, iy := range y.at {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("sample the problem: %w", context.Cause(ctx))
		}
		row := make([]float64, len(x.at))
		if err := read(iy, x.at, row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// sampleSource samples the source without the derivatives at Neumann walls: where a sample lies on such a wall, it
// takes the point beside it.
func sampleSource(ctx context.Context, f Field, x, y axis) ([][]float64, error) {
	inside := func(i int, a axis) int {
		if i == a.lo {
			i += int(2 * a.half(0))
		} else if i == a.hi {
			i -= int(2 * a.half(1))
		}
		return i
	}
	var cols []int
	for _, ix := range x.at {
		cols = append(cols, inside(ix, x))
	}
	return sample(ctx, x, y, func(iy int, _ []int, dst []float64) error {
		return f.SourceValues(inside(iy, y), cols, dst)
	})
}

// ends holds the values at the first two and the last two points of an axis. On an axis with one point all are equal.
type ends [4]float64

// side is what one side of the boundary adds to a sweep: the values of a fixed wall, or the derivative of a Neumann
// one.
type side struct {
	horizontal bool
	axis       axis      // along the side
	beside     int       // the point, across the side, to which the values are added
	factor     float64   // by which they are added, per point across the side
	values     []float64 // at the sampled points
	ends       ends
}

// sidesOf samples the sides but for periodic ones.
func sidesOf(f Field, x, y axis) ([]side, error) {
	var sides []side
	for _, horizontal := range []bool{false, true} {
		across, along := x, y
		if horizontal {
			across, along = y, x
		}
		for end, wall := range across.walls {
			place, beside, inner := across.lo, across.lo, across.lo+1
			if end == 1 {
				place, beside, inner = across.hi, across.hi, across.hi-1
			}
			s := side{horizontal: horizontal, axis: along, beside: beside}
			var read func(at int) (float64, error)
			switch wall {
			case solver.Periodic:
				continue
			case solver.Dirichlet:
				place += 2*end - 1 // the wall's own point
				s.factor = across.weight / across.size
				read = func(at int) (float64, error) { return value(f.Values, horizontal, at, place) }
			case solver.Neumann:
				s.factor = 0.5 / across.size
				read = func(at int) (float64, error) {
					wall, err := value(f.SourceValues, horizontal, at, place)
					if err != nil {
						return 0, err
					}
					rest, err := value(f.SourceValues, horizontal, at, inner)
					return wall - rest, err
				}
			}
			if err := s.sample(read); err != nil {
				return nil, err
			}
			sides = append(sides, s)
		}
	}
	return sides, nil
}

// value reads the point at along a side and place across it.
func value(read func(int, []int, []float64) error, horizontal bool, at, place int) (float64, error) {
	var v [1]float64
	if horizontal {
		at, place = place, at
	}
	err := read(at, []int{place}, v[:])
	return v[0], err
}

// sample reads the values of the side.
func (s *side) sample(read func(at int) (float64, error)) error {
	for _, at := range s.axis.at {
		v, err := read(at)
		if err != nil {
			return err
		}
		s.values = append(s.values, v)
	}
	lo, hi := s.axis.lo, s.axis.hi
	for i, at := range []int{lo, min(lo+1, hi), max(hi-1, lo), hi} {
		v, err := read(at)
		if err != nil {
			return err
		}
		s.ends[i] = v
	}
	return nil
}
