package problem

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
)

// samples is the number of interior rows, and of columns in each row, that Check evaluates.
const samples = 64

// Check evaluates every value of the boundary, and the initial field at 64 by 64 points that include the corners of the
// interior. It finds most bad problems before any rank starts. Row finds the others.
func (p *Problem) Check(ctx context.Context) error {
	largest := 0.0
	for iy := range p.mesh.NY {
		m, err := p.maxSides(ctx, iy)
		if err != nil {
			return err
		}
		largest = max(largest, m)
		if !p.left.node.onY && !p.right.node.onY {
			break
		}
	}
	if !p.mesh.PeriodicRows() {
		for _, iy := range []int{0, p.mesh.NY - 1} {
			m, err := p.maxInner(ctx, iy)
			if err != nil {
				return err
			}
			largest = max(largest, m)
		}
	}
	m, err := p.maxSample(ctx)
	if err != nil {
		return err
	}
	largest = max(largest, m)
	// A sample may miss the largest value, so a small value in the sample does not mean that the problem is too small.
	if low, _ := p.magnitudes(); p.file == nil && p.initial.constant() || largest >= low {
		return p.CheckMagnitude(largest)
	}
	return nil
}

// maxSample returns the largest absolute value among the samples of the interior.
func (p *Problem) maxSample(ctx context.Context) (float64, error) {
	largest := 0.0
	s := &span{}
	buf := make([]byte, p.mesh.RowBytes())
	size := p.mesh.DType.Size()
	for _, iy := range spread(p.mesh.NY - 2) {
		if err := ended(ctx); err != nil {
			return 0, err
		}
		if p.file != nil && !p.file.fortran {
			if err := p.fileRow(iy, buf[size:len(buf)-size]); err != nil {
				return 0, err
			}
		}
		for _, ix := range spread(p.mesh.NX - 2) {
			var v float64
			var err error
			if p.file != nil && p.file.fortran { // a row is spread over the whole file, so read single values
				if v, err = p.file.exact(iy, ix); err == nil {
					err = p.finite(p.initial, iy, ix, v)
				}
				if err != nil {
					return 0, err
				}
				v = p.round(v)
			} else if p.file != nil {
				v = p.get(buf[ix*size:])
			} else if v, err = p.value(p.initial, s, iy, ix); err != nil {
				return 0, err
			}
			largest = max(largest, math.Abs(v))
		}
	}
	return largest, nil
}

// spread returns at most samples of the numbers 1 to n, evenly spread and including 1 and n.
func spread(n int) []int {
	count := min(n, samples)
	list := make([]int, count)
	for i := range list {
		list[i] = 1 + i*(n-1)/max(1, count-1)
	}
	return list
}

// MaxAbs returns the largest absolute value in rows [lo, hi), including the boundary, rounded to the field's type.
// Without rows it returns 0. It evaluates each value once, and a constant only once for all rows. It stops when ctx
// ends.
func (p *Problem) MaxAbs(ctx context.Context, lo, hi int) (float64, error) {
	if lo < 0 || hi > p.mesh.NY {
		return 0, fmt.Errorf("rows %s: the mesh has rows %s", solver.Stripe{Lo: lo, Hi: hi},
			solver.Stripe{Lo: 0, Hi: p.mesh.NY})
	}
	largest := 0.0
	for iy := lo; iy < hi; iy++ {
		m, err := p.maxSides(ctx, iy)
		if err != nil {
			return 0, err
		}
		largest = max(largest, m)
		if !p.left.node.onY && !p.right.node.onY {
			break
		}
	}
	constant := p.file == nil && p.initial.constant()
	for iy := lo; iy < hi; iy++ {
		m, err := p.maxInner(ctx, iy)
		if err != nil {
			return 0, err
		}
		largest = max(largest, m)
		if constant && iy > 0 {
			iy = max(iy, min(hi, p.mesh.NY-1)-1) // skip to the bottom row
		}
	}
	return largest, nil
}

// ended returns an error with the cause if ctx has ended, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("problem: working out its values: %w", context.Cause(ctx))
}

// maxSides returns the larger absolute value of columns 0 and NX-1 in row iy.
func (p *Problem) maxSides(ctx context.Context, iy int) (float64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	left, err := p.Left(iy)
	if err != nil {
		return 0, err
	}
	right, err := p.Right(iy)
	return max(math.Abs(left), math.Abs(right)), err
}

// maxInner returns the largest absolute value of columns 1 to NX-2 in row iy.
func (p *Problem) maxInner(ctx context.Context, iy int) (float64, error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	q, from := p.inner(iy)
	largest := 0.0
	if q.key == p.initial.key && p.file != nil {
		size := p.mesh.DType.Size()
		buf := make([]byte, (p.mesh.NX-2)*size)
		err := p.fileRow(from, buf)
		for i := 0; i < len(buf); i += size {
			largest = max(largest, math.Abs(p.get(buf[i:])))
		}
		return largest, err
	}
	if !q.node.onX {
		v, err := p.value(q, &span{}, from, 1)
		return math.Abs(v), err
	}
	err := p.chunks(q, from, func(col int, values []float64) error {
		if err := ended(ctx); err != nil { // a row may be long
			return err
		}
		for i, v := range values {
			// The negated comparison also catches NaN.
			if a := math.Abs(v); !(a <= largest) {
				if err := p.finite(q, from, col+i, v); err != nil {
					return err
				}
				largest = a
			}
		}
		return nil
	})
	return p.round(largest), err // rounding is monotone
}

// CheckMagnitude refuses a problem with the largest absolute value maxAbs if the squares of updates would leave the
// range of the field's type.
func (p *Problem) CheckMagnitude(maxAbs float64) error {
	low, high := p.magnitudes()
	if maxAbs == 0 || maxAbs >= low && maxAbs <= high {
		return nil
	}
	advice := "scale the problem"
	if wideLow, wideHigh := limits(solver.Float64); p.mesh.DType == solver.Float32 && maxAbs >= wideLow &&
		maxAbs <= wideHigh {
		advice += " or use grid.dtype float64"
	}
	return fmt.Errorf("problem: its largest absolute value is %g; with %s 0 or %.3g to %.3g is allowed, because the "+
		"norm squares it: %s",
		maxAbs, p.mesh.DType, low, high, advice)
}

func (p *Problem) magnitudes() (low, high float64) { return limits(p.mesh.DType) }

// limits returns the range of the largest absolute value of a problem of type d.
func limits(d solver.DType) (low, high float64) {
	if d == solver.Float32 {
		return float64(float32(1e-12)), 1e18 // rounded like the values that are compared with it
	}
	return 1e-120, 1e150
}
