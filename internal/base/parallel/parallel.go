// Package parallel divides work without order among the cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls do for 0 to n-1, on as many cores as GOMAXPROCS allows, each of them in ascending order. It returns the
// error of the lowest number that fails, as a loop would; of the numbers above that, some are left out.
func Each(n int, do func(i int) error) error {
	var next, failed atomic.Int64
	failed.Store(int64(n))
	errs := make([]error, min(n, runtime.GOMAXPROCS(0)))
	at := make([]int64, len(errs)) // the number whose error is in errs
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < failed.Load(); i = next.Add(1) - 1 {
				if errs[w] = do(int(i)); errs[w] == nil {
					continue
				}
				at[w] = i
				for lowest := failed.Load(); i < lowest && !failed.CompareAndSwap(lowest, i); {
					lowest = failed.Load()
				}
				return
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
