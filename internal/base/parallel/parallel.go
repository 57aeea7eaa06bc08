// Package parallel divides work without order among the cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do for 0 to n-1, on as many cores as GOMAXPROCS allows, each of them in ascending order. A core takes a
// few numbers in a row at a time: neighbouring rows need the same rows beside them, which each core works out. It
// returns the error of the lowest number that fails, as a loop would; of the numbers above that, some are left out.
func Each(n int, do func(i int) error) error {
	return On(runtime.GOMAXPROCS(0), n, func(_, i int) error { return do(i) })
}

// On is Each on the given number of threads. do also gets the number of its thread, for memory of that thread's own.
func On(threads, n int, do func(thread, i int) error) error {
	var next, failed atomic.Int64
	failed.Store(int64(n))
	errs := make([]error, min(n, threads))
	at := make([]int64, len(errs)) // the number whose error is in errs
	few := int64(min(16, max(1, n/(2*threads))))
	work := func(w int, lo, hi int64) bool {
		for i := lo; i < min(hi, failed.Load()); i++ {
			if errs[w] = do(w, int(i)); errs[w] == nil {
				continue
			}
			at[w] = i
			for lowest := failed.Load(); i < lowest && !failed.CompareAndSwap(lowest, i); {
				lowest = failed.Load()
			}
			return false
		}
		return true
	}
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for lo := next.Add(few) - few; lo < failed.Load() && work(w, lo, lo+few); {
				lo = next.Add(few) - few
			}
		})
	}
	wg.Wait()
	for w, err := range errs {
		if err != nil && at[w] == failed.Load() {
			return err
		}
	}
	return nil
}
