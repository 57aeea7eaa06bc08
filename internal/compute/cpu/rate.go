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
func SweepRate(ctx context.Context, l solver.Layout, o Options, sweeps int) (float64, error) {
	least := time.Duration(math.MaxInt64)
	points, err := timePasses(ctx, l, o, sweeps, func(passes int, took, all time.Duration) bool {
		least = min(least, took)
		return passes < ratePasses && all < rateTime
	})
	return points / least.Seconds(), err
}

// MeanRate is SweepRate over some time: the mean of all passes in place of the fastest, for ranks that get processors
// for a part of the time only.
func MeanRate(ctx context.Context, l solver.Layout, o Options, sweeps int, during time.Duration) (float64, error) {
	var done int
	var total time.Duration
	points, err := timePasses(ctx, l, o, sweeps, func(passes int, _, all time.Duration) bool {
		done, total = passes, all
		return all < during
	})
	if err != nil {
		return 0, err
	}
	return points * float64(done) / total.Seconds(), nil
}

// timePasses makes passes, and calls more after each but the first with their number, the time that the last one took,
// and the time of all, until it returns false. It returns the updates of a pass.
func timePasses(ctx context.Context, l solver.Layout, o Options, sweeps int,
	more func(passes int, took, all time.Duration) bool) (points float64, err error) {
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
	points = float64(l.Stripe.Rows()) * float64(l.Mesh.NX) * float64(sweeps)
	var begin time.Time
	for i := 0; ; i++ {
		start := time.Now()
		if i == 1 {
			begin = start
		}
		if err := b.Interior(ctx, solver.Pass{Index: uint64(i), First: i * sweeps, Sweeps: sweeps}); err != nil {
			return 0, err
		}
		if i == 0 { // the first pass provides the memory
			continue
		}
		if end := time.Now(); !more(i, max(1, end.Sub(start)), max(1, end.Sub(begin))) {
			return points, nil
		}
	}
}

// zeros is a field of zeros.
type zeros struct{}

// Row implements solver.RowSource.
func (zeros) Row(_ int, dst []byte) error {
	clear(dst)
	return nil
}
