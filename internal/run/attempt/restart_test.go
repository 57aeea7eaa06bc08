package attempt

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// A run starts again from its newest checkpoint if a rank died or failed after its first sweep. If an attempt does not
// get beyond the checkpoint from which it resumed, the next one starts as the first did.
func TestWhereARunStartsAgain(t *testing.T) {
	const never, fromNewest, fromFirst = "", "again from old", "from where it first began" // no checkpoint is newer
	r := Saved{Config: configs.Config{Checkpoint: configs.Checkpoint{Resume: "old"}}}
	failed := func(sweeps int, died bool) error { return &launch.RankError{Sweeps: sweeps, Died: died} }
	for _, c := range []struct {
		name   string
		resume string // of the attempt that ended
		err    error
		want   string
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
		p := &plan.Plan{Config: configs.Config{Checkpoint: configs.Checkpoint{Resume: c.resume}}}
		_, got, ok := r.Next(t.Context(), p, Ended{Outcome: launch.Outcome{Err: c.err}}, true)
		if got != c.want || ok != (c.want != never) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, ok, c.want)
		}
	}
}

// The next attempt resumes as the first did if there is no checkpoint yet, and says so.
func TestNextAttempt(t *testing.T) {
	cfg := configs.Default()
	cfg.Checkpoint.Every, cfg.Checkpoint.Dir = configs.Interval{Iterations: 10}, t.TempDir()
	died := Ended{Outcome: launch.Outcome{Err: &launch.RankError{Died: true}}}
	for _, c := range []struct {
		may         bool
		first, last string // checkpoint.resume of the first attempt, and of the one that ended
		want        string
	}{
		{true, "", "", "from the start, there is no checkpoint yet"},
		{true, "saved", "saved", "again from saved"},
		{true, "saved", cfg.Checkpoint.Dir, "from where it first began"},
		{false, "", "", ""},
	} {
		cfg.Checkpoint.Resume = c.last
		p := &plan.Plan{Config: cfg}
		cfg.Checkpoint.Resume = c.first
		next, text, ok := Saved{cfg}.Next(t.Context(), p, died, c.may)
		if text != c.want || next.Checkpoint.Resume != c.first || ok != c.may {
			t.Errorf("%+v: %q from %q, %v", c, text, next.Checkpoint.Resume, ok)
		}
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

// notes is a Screen that keeps its notices.
type notes struct {
	Screen
	all []string
}

func (n *notes) Notice(text string) { n.all = append(n.all, text) }

// Whose files a run replaces is a notice, which a screen shows once, however often the run starts again.
func TestReplacedFilesAreANotice(t *testing.T) {
	cfg := configs.Default()
	cfg.Output.Dir = t.TempDir()
	ended := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	data, err := json.Marshal(output.Report{RunID: "old", Problem: "gtc2019", Ended: ended})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Output.Dir, "report.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	scr := &notes{}
	h, err := hold(cfg, "new", Options{Screen: scr})
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(t.Context())
	want := []string{cfg.Output.Dir + " has the files of run old (gtc2019), which ended on 2026-11-23 12:00:00: " +
		"this run replaces them"}
	if !slices.Equal(scr.all, want) {
		t.Errorf("noticed %q, want %q", scr.all, want)
	}
}

// After the ranks were killed, output.dir holds the files that the launcher has put there.
func TestLeft(t *testing.T) {
	o := configs.Output{Dir: "out"}
	if got := (Ended{}).Left(o); got != "outputs of earlier runs are as they were" {
		t.Error(got)
	}
	e := Ended{Files: []string{"history.csv", "report.json"}}
	if got := e.Left(o); got != "the outputs of this run are in place: out/history.csv, out/report.json" {
		t.Error(got)
	}
}
