package rank

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"jacobi/configs"
)

// A rank whose values take longer to work out than others wait for a rank is waited for, before the cycles and after
// them: the field, the results and the residual are there.
func TestRankAtWorkIsWaitedFor(t *testing.T) {
	const limit, work = 2 * time.Second, 4 * time.Second
	dir := t.TempDir()
	var before, after sync.Once
	var slow []string
	ranks := errgroup.Group{}
	for i := range 2 {
		cfg, err := configs.Load(configs.Options{Set: []string{"grid.nx=65", "grid.ny=129", "problem.right=1",
			"problem.coefficient=2+x*y", "output.dir=" + dir, "output.picture=", "device.backend=cpu", "run.ranks=2",
			"run.liveness=3s"}})
		if err != nil {
			t.Fatal(err)
		}
		o := testOptions(t, dir, i, 2)
		o.Config = cfg
		ranks.Go(func() error {
			s := o.start(func(error) {})
			defer s.open.close()
			if err := s.arrive(t.Context()); err != nil {
				return err
			}
			r := s.newRun(configs.Planned{Config: s.Config})
			defer r.open.close()
			if err := r.enter(s.all.Context(), s.all); err != nil {
				return err
			}
			r.Config.Halo.Timeout = limit
			if i == 1 {
				r.problem.OnWork(func() {
					once, when := &before, "before"
					if r.comm.Iterations() > 0 {
						once, when = &after, "after"
					}
					once.Do(func() { // others wait for it
						for begin := time.Now(); time.Since(begin) < work; time.Sleep(time.Millisecond) {
							r.comm.Worked()
						}
						slow = append(slow, when)
					})
				})
			}
			w, err := r.solveAll(s.all.Context())
			if err != nil {
				return fmt.Errorf("rank %d: %w", i, err)
			}
			if i == 0 && (w.report.Fault() != nil || w.report.Results == nil || w.report.Residual == nil) {
				t.Errorf("report: %v, results %v, residual %v", w.report.Fault(), w.report.Results, w.report.Residual)
			}
			return nil
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(slow) != "[before after]" {
		t.Errorf("rank 1 worked %v the cycles, want before and after", slow)
	}
}
