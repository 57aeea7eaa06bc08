package cpu

import (
	"context"
	"errors"
	"math"
	"time"

	"jacobi/solver"
)

const (
	// ratePoints bounds the points that SweepRate sweeps, more than the caches hold.
	ratePoints = 1 << 21
	// SweepRate makes at most ratePasses passes after the first one, and begins none later than rateTime.
	ratePasses = 4
	rateTime   = 20 * time.Millisecond
)

// SweepRate measures how many points of a layout a backend with these options updates in a second, in passes of the
// given number of sweeps. It sweeps at most ratePoints points, in rows at the upper end of the stripe, and takes some
// ten milliseconds. The values of the field do not matter; the operator does.
func SweepRate(ctx context.Context, l solver.Layout, o Options, sweeps int) (rate float64, err error) {
	rows := max(ratePoints/l.Mesh.NX, l.Depth)
	if end := (l.Stripe.Lo + rows + solver.GroupRows - 1) / solver.GroupRows * solver.GroupRows; end < l.Stripe.Hi {
		l.Stripe.Hi, l.Neighbour[solver.Bottom] = end, true
	}
	b, err := New(l, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Load(ctx, zeros{}); err != nil {
		return 0, err
	}
	least := time.Duration(math.MaxInt64)
	var begin time.Time
	for i := 0; i < 2 || i <= ratePasses && time.Since(begin) < rateTime; i++ {
		start := time.Now()
		if i <= 1 {
			begin = start
		}
		if err := b.Interior(ctx, solver.Pass{Index: uint64(i), First: i * sweeps, Sweeps: sweeps}); err != nil {
			return 0, err
		}
		if i > 0 { // the first pass provides the memory
			least = min(least, max(1, time.Since(start)))
		}
	}
	return float64(l.Stripe.Rows()) * float64(l.Mesh.NX) * float64(sweeps) / least.Seconds(), nil
}

// zeros is a field of zeros.
type zeros struct{}

// Row implements solver.RowSource.
func (zeros) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}
