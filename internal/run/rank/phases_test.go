package rank

import (
	"context"
	"strings"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/net/roster"
)

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
func setUpAlone(t *testing.T, change func(*Options)) *run {
	t.Helper()
	r := joinAlone(t.Context(), t, change)
	if err := inTurn(t.Context(), r.wire, r.load); err != nil {
		t.Fatal(err)
	}
	return r
}

// A phase that fails leaves what is open to the closers. They release it, and another run can have it.
func TestFailedPhaseReleasesWhatItHolds(t *testing.T) {
	dir := t.TempDir()
	hold(t, dir) // outputs cannot be prepared
	saved := t.TempDir()
	l := setUpAlone(t, func(o *Options) {
		o.Config.Output.Dir, o.Config.Checkpoint.Dir = dir, saved
		o.Config.Checkpoint.Every.Sweeps = 10
	})
	if l.saver == nil {
		t.Fatal("no checkpoints are saved")
	}
	if err := l.openOutputs(t.Context()); err == nil || !strings.Contains(err.Error(), dir) {
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
