package rank

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/rendezvous"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// testOptions returns the options of a rank that a scheduler has started on this machine, in a run of size ranks with
// a small mesh on the CPU. All ranks of a run are given one dir.
func testOptions(t *testing.T, dir string, rank, size int) Options {
	t.Helper()
	cfg := configs.Default()
	cfg.Run.Ranks, cfg.Grid.NX, cfg.Grid.NY, cfg.Solver.MaxIterations = size, 66, 98, 30
	cfg.Device.Backend, cfg.Output.Dir, cfg.Halo.Timeout = "cpu", dir, 10*time.Second
	if err := configs.Validate(cfg); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Origin: roster.Origin{By: "openmpi", Job: "job-1",
			Identity: roster.Identity{Rank: rank, Size: size, LocalRank: rank, LocalSize: size}},
		Config: cfg, Log: zap.NewNop(), Stop: t.Context(), End: func(error) {},
		Summarize: func(output.Report, *output.Held) error { return nil },
	}
	if size == 1 {
		o.Origin = roster.Origin{By: roster.Alone, Identity: roster.Identity{Size: 1, LocalSize: 1}}
	}
	return o
}

// runAll runs all ranks of a run in this process and returns their results.
func runAll(t *testing.T, ranks []Options) ([]solver.Result, []error) {
	t.Helper()
	results, errs := make([]solver.Result, len(ranks)), make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, o := range ranks {
		wg.Go(func() { results[i], errs[i] = Run(t.Context(), o) })
	}
	wg.Wait()
	return results, errs
}

// hold takes output.dir as a run does.
func hold(t *testing.T, dir string) *output.Held {
	t.Helper()
	held, _, err := output.Hold(configs.Output{Dir: dir}, "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	return held
}

// Ranks that meet at the server of rank 0 give the answer of a rank alone. The summary is asked for once, on rank 0,
// while the run still holds output.dir. At the end nothing is held and no rendezvous file is left.
func TestRunGivesOneAnswer(t *testing.T) {
	var sums []string
	for size := 1; size <= 3; size++ {
		dir := t.TempDir()
		var ranks []Options
		var reports []output.Report
		for i := range size {
			o := testOptions(t, dir, i, size)
			o.Summarize = func(report output.Report, outputs *output.Held) error {
				reports = append(reports, report)
				if i != 0 || outputs == nil {
					t.Errorf("%d ranks: rank %d summarizes, with outputs %v", size, i, outputs)
				}
				if _, _, err := output.Hold(configs.Output{Dir: dir}, "other"); err == nil {
					t.Errorf("%d ranks: output.dir is free before the summary", size)
				}
				return nil
			}
			ranks = append(ranks, o)
		}
		results, errs := runAll(t, ranks)
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d ranks: %v", size, err)
		}
		for i, r := range results {
			if r.Iterations != 30 || r.Reason != solver.MaxIterations || r.Norm != results[0].Norm {
				t.Errorf("%d ranks: rank %d did %d sweeps until %v, norm %g; rank 0 has norm %g", size, i, r.Iterations,
					r.Reason, r.Norm, results[0].Norm)
			}
		}
		if len(reports) != 1 {
			t.Fatalf("%d ranks: %d summaries", size, len(reports))
		}
		sums = append(sums, reports[0].FieldSHA256)
		hold(t, dir)
		meet := ranks[0].rendezvousFile()
		if _, err := os.Stat(meet); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d ranks: %s: %v, want no such file", size, meet, err)
		}
	}
	if sums[1] != sums[0] || sums[2] != sums[0] || len(sums[0]) != 64 {
		t.Errorf("fields of 1, 2 and 3 ranks: %q", sums)
	}
}

// A rank that fails tells the others why before it closes the server to which they are connected.
func TestFailureIsToldBeforeTheServerCloses(t *testing.T) {
	dir := t.TempDir()
	hold(t, dir)
	meet := t.TempDir()
	var ranks []Options
	for i := range 3 {
		o := testOptions(t, dir, i, 3)
		o.Config.NATS.Rendezvous = meet
		ranks = append(ranks, o)
	}
	_, errs := runAll(t, ranks)
	if err := errs[0]; err == nil || roster.IsConsequence(err) || !strings.HasPrefix(err.Error(), "rank 0: ") ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("rank 0: %v, want its own failure, with output.dir", err)
	}
	for i, err := range errs[1:] {
		abort, ok := errors.AsType[*roster.AbortError](err)
		if !ok || abort.Rank != 0 || !strings.Contains(abort.Cause, dir) || !roster.IsConsequence(err) {
			t.Errorf("rank %d: %v, want the abort of rank 0", i+1, err)
		}
	}
	if left, err := os.ReadDir(meet); err != nil || len(left) > 0 {
		t.Errorf("left where the ranks met: %v, %v", left, err)
	}
}

// A rank that is told to stop before its first sweep ends with that cause, whether it is alone or waits for another,
// and leaves nothing behind.
func TestStopBeforeTheFirstSweep(t *testing.T) {
	for size := 1; size <= 2; size++ {
		dir := t.TempDir()
		stop, cancel := context.WithCancelCause(t.Context())
		o := testOptions(t, dir, 0, size) // rank 1 of 2 never comes
		o.Stop = stop
		var wg sync.WaitGroup
		wg.Go(func() {
			if size == 2 {
				path := o.rendezvousFile()
				published := func(context.Context, rendezvous.Point) error { return nil }
				if err := rendezvous.Await(t.Context(), path, published); err != nil {
					t.Error(err)
				}
			}
			cancel(&StopError{syscall.SIGTERM})
		})
		if size == 1 {
			wg.Wait()
		}
		_, err := Run(t.Context(), o)
		wg.Wait()
		if e, ok := errors.AsType[*StopError](err); !ok || e.Signal != syscall.SIGTERM {
			t.Errorf("%d ranks: %v, want a *StopError", size, err)
		}
		if want := "stopped by SIGTERM before the first sweep"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d ranks: %v, want %q", size, err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d ranks: left in output.dir: %v, %v", size, left, err)
		}
	}
}
