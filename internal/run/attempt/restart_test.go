package attempt

import (
	"errors"
	"slices"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
)

// A run starts again from its newest checkpoint if a rank died or failed after its first sweep. If an attempt does not
// get beyond the checkpoint from which it resumed, the next one starts as the first did.
func TestWhereARunStartsAgain(t *testing.T) {
	r := Restarts{Config: configs.Config{Checkpoint: configs.Checkpoint{Resume: "old"}}}
	failed := func(sweeps int, died bool) error { return &launch.RankError{Sweeps: sweeps, Died: died} }
	for _, c := range []struct {
		name   string
		resume string // of the attempt that ended
		err    error
		want   origin
	}{
		{"the run ended well", "old", nil, never},
		{"no rank failed", "new", errors.New("disk full"), never},
		{"a failure before the first sweep", "old", failed(0, false), never},
		{"a failure later", "old", failed(8, false), fromNewest},
		{"a death before the first sweep", "old", failed(0, true), fromNewest},
		{"a failure later, resumed", "new", failed(8, false), fromNewest},
		{"a failure before the first sweep, resumed", "new", failed(0, false), fromFirst},
		{"a death before the first sweep, resumed", "new", failed(0, true), fromFirst},
	} {
		if got := r.decide(c.resume, launch.Outcome{Err: c.err}); got != c.want {
			t.Errorf("%s: origin %d, want %d", c.name, got, c.want)
		}
	}
}

// The next attempt resumes as the first did if there is no checkpoint yet, and says so. It leaves lost hosts out.
func TestNextAttempt(t *testing.T) {
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Run.Ranks, cfg.Device.Backend = 64, 128, 2, "cpu"
	cfg.Checkpoint.Every, cfg.Checkpoint.Dir = configs.Interval{Sweeps: 10}, t.TempDir()
	at := hosts.Where{Hosts: []string{"a.invalid:2,b.invalid:2"}, MapBy: "node", Lost: []string{"a.invalid"}}
	for _, c := range []struct {
		from         origin
		resume, want string
	}{
		{fromNewest, "", "from the start, there is no checkpoint yet"},
		{fromNewest, "saved", "again from saved"},
		{fromFirst, "saved", "from where it first began"},
	} {
		cfg.Checkpoint.Resume = c.resume
		p, text, err := Restarts{Config: cfg}.next(t.Context(), c.from, at, func(s string) { t.Error(s) })
		if err != nil {
			t.Fatal(err)
		}
		if text != c.want || p.Config.Checkpoint.Resume != c.resume || !slices.Equal(p.Names(), []string{"b.invalid"}) {
			t.Errorf("%q from %q on %v, want %q", text, p.Config.Checkpoint.Resume, p.Names(), c.want)
		}
	}
	at.Lost = []string{"a.invalid", "b.invalid"}
	_, _, err := Restarts{Config: cfg}.next(t.Context(), fromFirst, at, func(s string) { t.Error(s) })
	if want := "-np 2 ranks need 2 slots, and there are 0: "; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A limit that has passed still ends the run, since 0 would be no limit.
func TestLimitAfter(t *testing.T) {
	for _, c := range []struct{ left, passed, want time.Duration }{
		{0, time.Hour, 0}, {time.Minute, time.Second, 59 * time.Second}, {time.Minute, time.Hour, time.Millisecond},
	} {
		if got := (Limit{c.left, "x"}).After(c.passed); got != (Limit{c.want, "x"}) {
			t.Errorf("%v after %v: %v, want %v", c.left, c.passed, got.Left, c.want)
		}
	}
}

// Where no checkpoint can be read, and where the user has named the method, the configuration stays as it is.
func TestWithMethodKeeps(t *testing.T) {
	cfg := configs.Default()
	for _, resume := range []string{"", t.TempDir(), "/nowhere"} {
		cfg.Checkpoint.Resume = resume
		if got := WithMethod(t.Context(), cfg); got != cfg {
			t.Errorf("%q: %+v", resume, got.Solver)
		}
	}
}
