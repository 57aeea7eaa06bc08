package rank

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/base/dirlock"
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
		sums = append(sums, reports[0].FieldHash)
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

// Ranks never save their state beside a checkpoint that checkpoint.dir names, where they would later remove it. The
// launcher refuses it before they start, if it sees the directory.
func TestACheckpointIsNoPlaceForCheckpoints(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	sets := func() []string {
		sets, err := filepath.Glob(filepath.Join(place, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return sets
	}
	saving := func(in string) []error {
		ranks := []Options{testOptions(t, dir, 0, 2), testOptions(t, dir, 1, 2)}
		for i := range ranks {
			ranks[i].Config.Checkpoint = configs.Checkpoint{Every: configs.Interval{Iterations: 10}, Dir: in, Keep: 1}
		}
		_, errs := runAll(t, ranks)
		return errs
	}
	if err := errors.Join(saving(place)...); err != nil {
		t.Fatal(err)
	}
	one := sets()
	if len(one) != 1 {
		t.Fatalf("checkpoints %v, want one", one)
	}
	want := fmt.Sprintf("checkpoint.dir %q: must be a directory of checkpoints; with manifest.json it is one "+
		"checkpoint, which only checkpoint.resume takes", one[0])
	for rank, err := range saving(one[0]) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
	if left := sets(); !slices.Equal(left, one) {
		t.Errorf("checkpoints %v, want %v", left, one)
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

// sessionAlone returns the session of a rank alone. Everything that it opens is closed with the test.
func sessionAlone(t *testing.T, change func(*Options)) *session {
	t.Helper()
	o := testOptions(t, t.TempDir(), 0, 1)
	if change != nil {
		change(&o)
	}
	s := o.start(func(error) {})
	t.Cleanup(s.open.close)
	return s
}

// joinAlone takes a rank alone through the phases up to takePlace. ctx ends its comm.
func joinAlone(ctx context.Context, t *testing.T, change func(*Options)) *run {
	t.Helper()
	s := sessionAlone(t, change)
	if err := s.arrive(ctx); err != nil {
		t.Fatal(err)
	}
	r := s.newRun(configs.Planned{Config: s.Config})
	t.Cleanup(r.open.close)
	if err := r.enter(ctx, s.all); err != nil {
		t.Fatal(err)
	}
	return r
}

// A rank alone needs no server. It joins as the only member, under the name of its job if it has one.
func TestJoinAlone(t *testing.T) {
	for job, want := range map[string]string{"": roster.Alone, "job-7": "job-7"} {
		j := joinAlone(t.Context(), t, func(o *Options) { o.Origin.Job = job })
		if j.conn != nil || j.rawConn() != nil || j.retract != nil {
			t.Errorf("job %q: connection %v, rendezvous %t", job, j.conn, j.retract != nil)
		}
		if j.id.RunID != want || len(j.comm.Members()) != 1 {
			t.Errorf("job %q: run %q of %d ranks, want run %q of 1", job, j.id.RunID, len(j.comm.Members()), want)
		}
		if m := j.comm.Self(); m.Device != "cpu" || m.Depth < 1 || j.comm.Whole().MaxAbs == 0 {
			t.Errorf("job %q: agreed on %+v, %+v", job, m, j.comm.Whole())
		}
		if cores, err := allowedCores(); err != nil || j.cores != float64(cores.Count()) {
			t.Errorf("job %q: a share of %g cores, want all %d (%v)", job, j.cores, cores.Count(), err)
		}
	}
}

// On a server of the user the run needs a name that tells it from others.
func TestServerOfTheUserNeedsTheNameOfTheRun(t *testing.T) {
	s := sessionAlone(t, func(o *Options) {
		o.Origin = roster.Origin{By: "pmi", Identity: roster.Identity{Size: 2, LocalRank: -1}}
		o.Config.NATS.URL = "nats://localhost:1"
	})
	err := s.connect(t.Context())
	want := "nats.url: pmi does not tell the ranks of one run from those of another on the same server; " +
		"set JACOBI_RUN_ID to a name of this run"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The ranks of a job meet at one path, which the name of the run or of the job makes its own.
func TestRendezvousFile(t *testing.T) {
	for _, test := range []struct{ dir, runID, job, want string }{
		{"", "", "", "/out/.jacobi-rendezvous"},
		{"", "", "job-1", "/out/.jacobi-rendezvous-job-1"},
		{"", "mine", "job-1", "/out/.jacobi-rendezvous-mine"},
		{"/shared", "", "job-1", "/shared/.jacobi-rendezvous-job-1"},
	} {
		var s Options
		s.Config.Output.Dir, s.Config.NATS.Rendezvous = "/out", test.dir
		s.Origin.RunID, s.Origin.Job = test.runID, test.job
		if got := s.rendezvousFile(); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// The wait for files grows with the field: 1 GiB takes 102 s on the slowest disk.
func TestFileTimeout(t *testing.T) {
	p := joinAlone(t.Context(), t, func(o *Options) { o.Config.Grid.NX, o.Config.Grid.NY = 16384, 16384 })
	if got, want := p.fileTimeout(), p.Config.Halo.Timeout+102*time.Second; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// setUpAlone takes a rank alone through the phases up to load.
func setUpAlone(t *testing.T, change func(*Options)) *loaded {
	t.Helper()
	w, err := joinAlone(t.Context(), t, change).wire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A phase that fails leaves what is open to the closers. They release it, and another run can have it.
func TestFailedPhaseReleasesWhatItHolds(t *testing.T) {
	dir := t.TempDir()
	hold(t, dir) // outputs cannot be prepared
	saved := t.TempDir()
	l := setUpAlone(t, func(o *Options) {
		o.Config.Output.Dir, o.Config.Checkpoint.Dir = dir, saved
		o.Config.Checkpoint.Every.Iterations = 10
	})
	if l.saver == nil {
		t.Fatal("no checkpoints are saved")
	}
	if _, err := l.openOutputs(t.Context(), coarser{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("outputs: %v, want an error that names output.dir", err)
	}
	if lock, err := dirlock.Take(saved, "next"); err == nil {
		t.Errorf("checkpoint.dir is free before the rank has closed: %v", lock.Release())
	}
	l.open.close()
	lock, err := dirlock.Take(saved, "next")
	if err != nil {
		t.Fatalf("checkpoint.dir is held after the rank has closed: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// The cause of the comm's end is reported, and not the error that it led to.
func TestBlame(t *testing.T) {
	followed := errors.New("wait for halo rows: context canceled")
	for _, test := range []struct {
		cause, want error
	}{
		{nil, followed},
		{errors.New("no more"), followed},
		{&roster.AbortError{Rank: 2, Cause: "out of memory"}, nil},
		{&roster.SilentError{Rank: 1, Host: "b"}, nil},
		{&roster.ServerError{Server: "nats://a:4222"}, nil},
		{&StopError{syscall.SIGINT}, nil},
	} {
		want := test.want
		if want == nil {
			want = test.cause
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		j := joinAlone(ctx, t, nil)
		if test.cause != nil {
			cancel(test.cause)
		}
		if got := j.blame(followed); got != want {
			t.Errorf("the comm ends with %v: %v is blamed, want %v", test.cause, got, want)
		}
		if got, want := j.fail(followed).Error(), "rank 0: "+want.Error(); got != want {
			t.Errorf("the comm ends with %v: reported is %q, want %q", test.cause, got, want)
		}
		cancel(nil)
	}
}

// A wait that was too long names the key of its deadline, unless another rank said why it ended.
func TestTimeoutsNameTheirKey(t *testing.T) {
	var o Options
	o.Config.Halo.Timeout = 5 * time.Millisecond
	late := &roster.TimeoutError{Op: "gather", Ranks: []int{1}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("join: %w", late), "join: gather: timed out waiting for rank 1 (halo.timeout 5ms)"},
		{context.DeadlineExceeded, "context deadline exceeded (halo.timeout 5ms)"},
		{errors.New("disk full"), "disk full"},
		{&roster.AbortError{Rank: -1, Cause: "it is over"}, "run aborted by the launcher: it is over"},
	} {
		if got := o.namingTimeout(c.err); got.Error() != c.want || !errors.Is(got, c.err) && !errors.Is(got, late) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A known fault of the connection explains a wait that timed out, which is then this rank's own failure. It explains no
// other error.
func TestWithFault(t *testing.T) {
	timeout := &roster.TimeoutError{Op: "gather", Ranks: []int{1}}
	abort := &roster.AbortError{Rank: 2, Cause: "out of memory"}
	own := errors.New("disk full")
	refused := errors.New("permissions violation")
	for _, test := range []struct {
		err, fault  error
		want        string
		consequence bool
	}{
		{timeout, refused, "gather: timed out waiting for rank 1; permissions violation", false},
		{timeout, nil, timeout.Error(), true},
		{abort, refused, abort.Error(), true},
		{fmt.Errorf("sweep 7: %w", abort), refused, "sweep 7: " + abort.Error(), true},
		{own, refused, own.Error(), false},
	} {
		c := &session{connection: connection{fault: func() error { return test.fault }}}
		got := c.withFault(test.err)
		if got.Error() != test.want {
			t.Errorf("%v with fault %v: %q, want %q", test.err, test.fault, got, test.want)
		}
		if c := roster.IsConsequence(got); c != test.consequence {
			t.Errorf("%v with fault %v: a consequence: %t, want %t", test.err, test.fault, c, test.consequence)
		}
	}
	if got := (&session{}).withFault(timeout); got != timeout {
		t.Errorf("without a connection: %v, want %v", got, timeout)
	}
}

// Everything is closed once, newest first, whatever fails; only an error that is news is logged.
func TestClosersCloseTheNewestFirst(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	open := &closers{log: zap.New(core)}
	var order []string
	for _, part := range []struct {
		name string
		err  error
	}{
		{"server", nil},
		{"links", errors.New("links: already closed")},
		{"backend", fmt.Errorf("free: %w", driver.ErrContextLost)},
	} {
		open.add(func() error {
			order = append(order, part.name)
			return part.err
		})
	}
	open.close()
	open.close()
	if want := []string{"backend", "links", "server"}; !slices.Equal(order, want) {
		t.Errorf("closed %q, want %q", order, want)
	}
	var logged []string
	for _, entry := range logs.All() {
		logged = append(logged, fmt.Sprint(entry.Message, ": ", entry.ContextMap()["error"]))
	}
	if want := []string{"close: links: already closed"}; !slices.Equal(logged, want) {
		t.Errorf("logged %q, want %q", logged, want)
	}
}
