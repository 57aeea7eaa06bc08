package rank

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// smallRun returns the options of the ranks of a run in float64 with the given keys. rank 0 stores its report.
func smallRun(t *testing.T, size int, report *output.Report, keys ...string) (ranks []Options) {
	t.Helper()
	dir := t.TempDir()
	set := append([]string{fmt.Sprintf("run.ranks=%d", size), "problem.preset=dirichlet", "grid.dtype=float64",
		"device.backend=cpu", "halo.timeout=20s", "output.dir=" + dir, "output.picture="}, keys...)
	cfg, err := configs.Load(configs.Options{Set: set})
	if err == nil {
		err = configs.Validate(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range size {
		o := testOptions(t, dir, i, size)
		o.Config = cfg
		o.Summarize = func(r output.Report, _ *output.Held) error {
			*report = r
			return nil
		}
		ranks = append(ranks, o)
	}
	return ranks
}

// The number of ranks changes neither method nor answer, however few rows there are, and every rank ends as the run
// does.
func TestFewRowsAndManyRanks(t *testing.T) {
	for _, mesh := range []struct {
		nx, ny  int
		working map[string]int // of 8 ranks, by method
	}{
		{64, 40, map[string]int{configs.Jacobi: 5, configs.Multigrid: 2}},
		{1025, 17, map[string]int{configs.Jacobi: 2, configs.Multigrid: 1}},
		{3, 3, map[string]int{configs.Jacobi: 1, configs.Multigrid: 1}},
		{5, 9, map[string]int{configs.Jacobi: 1, configs.Multigrid: 1}},
	} {
		for method, working := range mesh.working {
			var want output.Report
			for _, on := range []struct {
				size      int
				transport string
			}{{1, "auto"}, {2, "auto"}, {3, "auto"}, {8, "auto"}, {8, "nats"}} {
				size, transport := on.size, on.transport
				var got output.Report
				ranks := smallRun(t, size, &got, "solver.method="+method, "halo.transport="+transport,
					fmt.Sprintf("grid.nx=%d", mesh.nx), fmt.Sprintf("grid.ny=%d", mesh.ny), "solver.max_iterations=20")
				results, errs := runAll(t, ranks)
				name := fmt.Sprintf("%d x %d by %s on %d ranks over %s", mesh.nx, mesh.ny, method, size, transport)
				if err := errors.Join(errs...); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if size == 1 {
					want = got
				}
				if got.FieldHash != want.FieldHash || got.StopReason != want.StopReason ||
					got.Sweeps != want.Sweeps || *got.Norm != *want.Norm || got.Method != method {
					t.Errorf("%s: %s after %d %s, norm %g; one rank: %s after %d %s, norm %g", name, got.FieldHash,
						got.Sweeps, got.StopReason, *got.Norm, want.FieldHash, want.Sweeps, want.StopReason,
						*want.Norm)
				}
				if n := min(size, working); len(got.Ranks) != n || got.Idle != ranks[0].Config.Idle() ||
					(got.Idle == "") != (n == size) {
					t.Errorf("%s: %d ranks work, want %d; %q", name, len(got.Ranks), n, got.Idle)
				}
				for r := range results {
					if results[r].Reason != want.StopReason {
						t.Errorf("%s: rank %d ends with %q, want %q", name, r, results[r].Reason, want.StopReason)
					}
				}
			}
		}
	}
}

// A checkpoint of working ranks serves any number of ranks.
func TestResumeWithIdleRanks(t *testing.T) {
	keys := []string{"grid.nx=64", "grid.ny=40", "solver.method=multigrid"}
	var want, got output.Report
	run := func(size int, report *output.Report, more ...string) {
		t.Helper()
		_, errs := runAll(t, smallRun(t, size, report, append(more, keys...)...))
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d ranks: %v", size, err)
		}
	}
	run(1, &want)
	saved := t.TempDir()
	run(4, &got, "solver.max_iterations=3", "checkpoint.every=3 cycles", "checkpoint.dir="+saved)
	for _, size := range []int{1, 2, 7} {
		run(size, &got, "checkpoint.resume="+saved)
		if got.FieldHash != want.FieldHash || got.ResumedAfter != 3 || got.Sweeps != want.Sweeps {
			t.Errorf("%d ranks: field %s after %d cycles, resumed after %d; want %s after %d", size, got.FieldHash,
				got.Sweeps, got.ResumedAfter, want.FieldHash, want.Sweeps)
		}
	}
}

// longRun are the keys of a run of two working ranks that takes seconds.
var longRun = []string{"solver.method=jacobi", "grid.nx=4096", "grid.ny=64", "halo.depth=30", "solver.tolerance=0",
	"solver.max_iterations=1000000000"}

// Idle ranks end with the abort of a working rank, and the working ranks with that of an idle one.
func TestFailureWithIdleRanks(t *testing.T) {
	const size, failing = 4, 3
	for _, fails := range []int{0, failing} {
		ranks := smallRun(t, size, new(output.Report), longRun...)
		ctx, cancel := context.WithCancelCause(t.Context())
		ranks[0].Watch = func(e roster.Event) {
			if e.Kind == roster.Progress {
				cancel(errors.New("broken"))
			}
		}
		errs := make(chan error, size)
		for i, o := range ranks {
			life := t.Context()
			if i == fails {
				life = ctx
			}
			go func() {
				_, err := Run(life, o)
				if i != fails {
					errs <- err
				}
			}()
		}
		for range size - 1 {
			err := <-errs
			if a, ok := errors.AsType[*roster.AbortError](err); !ok || a.Rank != fails ||
				!strings.Contains(a.Cause, "broken") {
				t.Errorf("rank %d fails: %v", fails, err)
			}
		}
	}
}

// A request to stop an idle rank stops the run at a common sweep, and all ranks end as interrupted.
func TestStopOfIdleRank(t *testing.T) {
	const size = 3
	ranks := smallRun(t, size, new(output.Report), longRun...)
	stop, cancel := context.WithCancelCause(t.Context())
	ranks[size-1].Stop = stop
	ranks[0].Watch = func(e roster.Event) {
		if e.Kind == roster.Progress {
			cancel(&StopError{syscall.SIGTERM})
		}
	}
	results, errs := runAll(t, ranks)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Reason != solver.Interrupted {
			t.Errorf("rank %d ends with %q", i, r.Reason)
		}
	}
}

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
