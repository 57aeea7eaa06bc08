package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"jacobi/solver"
)

// With 16 sweeps a pass, arithmetic rather than memory limited the speed on every machine measured; deeper passes
// gained little. A pass repeats about as many rows as it has sweeps at each end of a thread's rows, so stripes of few
// rows get fewer sweeps.
const (
	maxDepth     = 16
	rowsPerSweep = 16
)

// minMaxSweeps is the number of sweeps that a pass may always have. A deeper halo allows deeper passes.
const minMaxSweeps = 32

// MaxSweeps returns the largest number of sweeps in a pass on a mesh. Periodic columns are copied between sweeps, so
// their passes have one sweep; others have no limit but the depth of their halos.
func MaxSweeps(m solver.Mesh) int {
	if m.PeriodicColumns() {
		return 1
	}
	return math.MaxInt32
}

// PreferredDepth returns a fast number of sweeps in a pass, and so of rows in a halo, for a mesh whose smallest stripe
// has minRows rows.
func PreferredDepth(m solver.Mesh, minRows int) int {
	return max(1, min(maxDepth, minRows/rowsPerSweep, MaxSweeps(m)))
}

// defaultCache is the assumed size of the second-level cache where the system does not tell it.
const defaultCache = 1 << 20

// scratchCache returns the bytes of cache that a thread's scratch may fill: half of the second level, since the rows
// read and written pass through it too.
func scratchCache() int { return secondLevelCache("/sys/devices/system/cpu/cpu0/cache") / 2 }

// secondLevelCache reads the size of the second-level cache as Linux describes it under dir.
func secondLevelCache(dir string) int {
	levels, err := filepath.Glob(filepath.Join(dir, "index*", "level"))
	if err != nil {
		return defaultCache
	}
	for _, level := range levels {
		if text, err := os.ReadFile(level); err != nil || strings.TrimSpace(string(text)) != "2" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(level), "size"))
		if err != nil {
			continue
		}
		if kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "K")); err == nil && kib > 0 {
			return kib << 10
		}
	}
	return defaultCache
}

const (
	// ratePoints bounds the points that SweepRate sweeps, more than the caches hold.
	ratePoints = 1 << 21
	// SweepRate makes at most ratePasses passes after the first one, and begins none later than rateTime.
	ratePasses = 4
	rateTime   = 20 * time.Millisecond
)

// SweepRate measures how many points of a layout a backend with these options updates in a second, in passes of
// l.MaxSweeps sweeps. It sweeps at most ratePoints points, in rows at the upper end of the stripe, and takes some ten
// milliseconds. The values of the field do not matter; the operator does.
func SweepRate(ctx context.Context, l solver.Layout, o Options) (float64, error) {
	least := time.Duration(math.MaxInt64)
	points, err := timePasses(ctx, l, o, func(passes int, took, all time.Duration) bool {
		least = min(least, took)
		return passes < ratePasses && all < rateTime
	})
	return points / least.Seconds(), err
}

// MeanRate is SweepRate over some time: the mean of all passes in place of the fastest, for ranks that get processors
// for a part of the time only.
func MeanRate(ctx context.Context, l solver.Layout, o Options, during time.Duration) (float64, error) {
	var done int
	var total time.Duration
	points, err := timePasses(ctx, l, o, func(passes int, _, all time.Duration) bool {
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
func timePasses(ctx context.Context, l solver.Layout, o Options,
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
	if err := b.Load(ctx, solver.Zeros{}); err != nil {
		return 0, err
	}
	points = float64(l.Stripe.Rows()) * float64(l.Mesh.NX) * float64(l.MaxSweeps)
	var begin time.Time
	for i := 0; ; i++ {
		start := time.Now()
		if i == 1 {
			begin = start
		}
		pass := solver.Pass{Index: uint64(i), First: i * l.MaxSweeps, Sweeps: l.MaxSweeps}
		if err := b.Interior(ctx, pass); err != nil {
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

const (
	page         = 4096
	maxCopyTries = 12              // of all kinds of copy together
	minCopyTries = 4               // made however long they take
	copyTime     = 2 * time.Second // no try beyond minCopyTries begins after it
	// copyShare is the least number of bytes that a thread copies in a try, so that starting and joining the threads
	// does not count.
	copyShare = 64 << 20
)

// CopyRate measures how fast the given number of threads copies a field of the given size to another one, in bytes read
// and written a second. It returns the fastest of several tries with stores through the caches and with stores that
// bypass them. The rate is the roofline of a pass of one sweep. Each thread copies its own part, which it was the first
// to touch. CopyRate allocates two fields and takes up to a few seconds.
func CopyRate(ctx context.Context, bytes, threads int) (rate float64, err error) {
	if bytes < 1 || threads < 1 {
		return 0, fmt.Errorf("copy rate of %d bytes with %d threads: both must be at least 1", bytes, threads)
	}
	pages := (bytes + page - 1) / page
	threads = min(threads, pages)
	var fields [2]memory
	defer func() { err = errors.Join(err, fields[0].free(), fields[1].free()) }()
	for i := range fields {
		if fields[i], err = newMemory(pages * page); err != nil {
			return 0, fmt.Errorf("copy rate: %w", err)
		}
	}
	kinds := []func(dst, src []byte){func(dst, src []byte) { copy(dst, src) }}
	if stream := streamCopy(); stream != nil {
		kinds = append(kinds, stream)
	}
	each := func(do func(dst, src []byte)) {
		var busy sync.WaitGroup
		for i := range threads {
			lo, hi := pages*i/threads*page, pages*(i+1)/threads*page
			busy.Go(func() { do(fields[0][lo:hi], fields[1][lo:hi]) })
		}
		busy.Wait()
	}
	each(func(dst, src []byte) {
		clear(dst)
		clear(src)
	})
	passes := max(1, threads*copyShare/(pages*page))
	begin := time.Now()
	for try := 0; try < minCopyTries || try < maxCopyTries && time.Since(begin) < copyTime; try++ {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		each(func(dst, src []byte) {
			for range passes {
				kinds[try%len(kinds)](dst, src)
			}
		})
		rate = max(rate, 2*float64(passes)*float64(pages*page)/time.Since(start).Seconds())
	}
	return rate, nil
}
