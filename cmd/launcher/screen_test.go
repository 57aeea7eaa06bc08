package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/logging"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/stats"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/solver"
)

func at(sweeps int, elapsed time.Duration) roster.Event {
	return roster.Event{
		Kind: roster.Progress, Sweeps: sweeps, MaxSweeps: 1000, Norm: 0.0721, GLUPs: 5.214, Elapsed: elapsed,
		End: 1000, Left: elapsed * time.Duration(1000-sweeps) / time.Duration(sweeps),
	}
}

func TestLineProgressInterval(t *testing.T) {
	var said []string
	now := time.Unix(0, 0)
	p := &lineProgress{say: func(s string) { said = append(said, s) }, now: func() time.Time { return now }}
	p.event(roster.Event{Kind: roster.Started})
	for s := 1; s <= 13; s++ {
		now = now.Add(time.Second)
		p.event(at(20*s, time.Duration(s)*time.Second))
	}
	p.close()
	p.close()
	want := []string{
		"20 of 1000 sweeps (2%), norm 7.2100e-02, 5.214 GLUP/s, about 49 s left",
		"120 of 1000 sweeps (12%), norm 7.2100e-02, 5.214 GLUP/s, about 44 s left",
		"220 of 1000 sweeps (22%), norm 7.2100e-02, 5.214 GLUP/s, about 39 s left",
		"260 of 1000 sweeps (26%), norm 7.2100e-02, 5.214 GLUP/s, about 37 s left",
	}
	if !slices.Equal(said, want) {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinesStayWholeAndTagged(t *testing.T) {
	var out, errOut bytes.Buffer
	s := newScreen(&out, &errOut, look{tag: launch.TagRank})
	var wg sync.WaitGroup
	for rank := range 4 {
		wg.Go(func() {
			for i := range 200 {
				s.RankLine(rank, launch.Stream(i%2), []byte(strings.Repeat(fmt.Sprint(rank), 50)))
			}
		})
	}
	wg.Wait()
	s.Say("done")
	for name, text := range map[string]string{"stdout": out.String(),
		"stderr": strings.TrimSuffix(errOut.String(), "launcher: done\n")} {
		count := map[string]int{}
		for line := range strings.Lines(text) {
			count[line]++
		}
		for rank := range 4 {
			if n := count[fmt.Sprintf("[%d] %s\n", rank, strings.Repeat(fmt.Sprint(rank), 50))]; n != 100 {
				t.Errorf("%s has %d whole lines of rank %d, want 100", name, n, rank)
			}
		}
	}
}

// While a bar is shown, a terminal gets every line once and whole, with the bar below.
func TestBarLeavesLinesWhole(t *testing.T) {
	var terminal bytes.Buffer // the bar's goroutine writes it until close
	b := newRunBar(&terminal, configs.Solver{MaxIterations: 1000}, 4, mpb.WithAutoRefresh(),
		mpb.WithRefreshRate(time.Millisecond))
	s := newScreen(&terminal, &terminal, look{tag: launch.TagRank})
	s.sameTerminal = true
	s.show(b.bar)
	b.event(at(500, 10*time.Second))
	s.RankLine(2, launch.Stdout, []byte("from rank 2"))
	s.Say("from the launcher")
	b.event(at(1000, 20*time.Second))
	s.hide()
	s.Say("after the bar")

	text := terminal.String()
	for _, line := range []string{"\r[2] from rank 2\n", "\rlauncher: from the launcher\n"} {
		before, _, ok := strings.Cut(text, line)
		if !ok || before != "" && !strings.HasSuffix(before, "\n") && !strings.HasSuffix(before, "\x1b[J") {
			t.Errorf("%q is missing, or not on a line of its own, in\n%q", line, text)
		}
	}
	if !strings.HasSuffix(text, "launcher: after the bar\n") {
		t.Errorf("the last line is missing in\n%q", text)
	}
}

func TestConclude(t *testing.T) {
	norm := 0.5
	report := output.Report{RunID: "r1", Version: "v1", Problem: "gtc2019", Sweeps: 10, MaxIterations: 10,
		StopReason: solver.MaxIterations,
		Norm:       &norm, Ranks: []output.RankReport{{Host: "here"}}}
	sent, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "report.json"), sent, 0o644); err != nil {
		t.Fatal(err)
	}
	written := configs.Output{Dir: dir, Report: "report.json"}
	for _, c := range []struct {
		name   string
		out    launch.Outcome
		o      configs.Output
		run    string
		code   int
		stdout bool // the line is a summary
		stderr string
	}{
		{"report sent", launch.Outcome{Report: sent}, configs.Output{}, "r1", 0, true, ""},
		{"report read", launch.Outcome{}, written, "r1", 0, true, ""},
		{"report of another run", launch.Outcome{}, written, "r2", 1, false,
			"launcher: the run ended well, but its report is lost: it was not sent, and " +
				filepath.Join(dir, "report.json") + " is of run r1\n"},
		{"no report", launch.Outcome{}, configs.Output{}, "r1", 1, false,
			"launcher: the run ended well, but its report is lost: it was not sent, and output.report names no file\n"},
		{"failure", launch.Outcome{Err: &launch.RankError{Rank: 2, Host: "here", Text: "failed: disk full", Sweeps: 8},
			Report: sent}, configs.Output{}, "r1", 1, false,
			"launcher: rank 2 on here failed: disk full (last known sweep: 7)\n"},
	} {
		var out, errOut bytes.Buffer
		ended := attempt.Ended{Outcome: c.out, RunID: c.run}
		err := conclude(ended, c.o, newScreen(&out, &errOut, look{tag: launch.TagRank}))
		code := 0
		if e, ok := errors.AsType[launch.ExitError](err); ok {
			code = e.Code
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if code != c.code || (out.Len() > 0) != c.stdout || errOut.String() != c.stderr {
			t.Errorf("%s: code %d, stdout %q, stderr %q", c.name, code, &out, &errOut)
		}
	}
}

// A file that could not be written is reported and makes the run fail.
func TestConcludeReportsMissingFiles(t *testing.T) {
	report := output.Report{RunID: "r1", Dir: "out", Ranks: []output.RankReport{{Host: "here"}},
		Failed: []output.FileFault{{Name: "field.npy", Error: "disk full"}}}
	sent, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	e := attempt.Ended{Outcome: launch.Outcome{Report: sent}, RunID: "r1", Fault: errors.New("broken pipe")}
	err = conclude(e, configs.Output{Dir: "out"}, newScreen(&out, &errOut, look{tag: launch.TagRank}))
	code, _ := errors.AsType[launch.ExitError](err)
	const want = "launcher: out/field.npy is not written: disk full\nlauncher: broken pipe\n"
	told := strings.Contains(out.String(), "  NOT WRITTEN  out/field.npy: disk full\n")
	if code.Code != 1 || errOut.String() != want || !told {
		t.Errorf("code %d\n%s%s\nwant 1 and %s", code.Code, &out, &errOut, want)
	}
}

// Control characters in messages of ranks and servers do not reach the terminal.
func TestScreenEscapesControlCharacters(t *testing.T) {
	const evil = "\x1b]0;title\a\x1b[2J\u202eab\u009b1m\xff\x7f"
	const want = `\x1b]0;title\a\x1b[2J\u202eab\u009b1m\xff\u007f`
	var out, errs bytes.Buffer
	s := newScreen(&out, &errs, look{tag: launch.TagRank})
	s.RankLine(3, launch.Stdout, []byte(evil))
	s.Say(evil)
	if got := out.String() + errs.String(); got != "[3] "+want+"\nlauncher: "+want+"\n" {
		t.Errorf("got %q", got)
	}
	for _, format := range []string{"console", "json"} {
		errs.Reset()
		log, err := logging.New(s, "info", format, -1)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn(evil, zap.String("said", evil))
		got := errs.String()
		raw := strings.ContainsAny(got, "\x1b\a\u202e\u009b\x7f") || !utf8.ValidString(got)
		if raw || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", format, got)
		}
		if format == "json" && !json.Valid([]byte(got)) {
			t.Errorf("no JSON: %s", got)
		}
	}
}

// The text beside the bar fits, and has the most that does.
func TestBesideBar(t *testing.T) {
	e := at(500, 10*time.Second)
	for _, c := range []struct {
		width         int
		lagging, want string
	}{
		{100, "", "500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left"},
		{75, "", "500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left"},
		{74, "", "500 of 1000 sweeps, norm 7.2100e-02, 5.214 GLUP/s, about 10 s left"},
		{65, "", "500 of 1000 sweeps, norm 7.2100e-02, about 10 s left"},
		{40, "", "500 of 1000 sweeps, about 10 s left"},
		{20, "", "500 of 1000 sweeps"},
		{17, "", "500/1000"},
		{7, "", ""},
		{100, "rank 3 lags",
			"500 of 1000 sweeps, norm 7.2100e-02 to 1e-08, 5.214 GLUP/s, about 10 s left, rank 3 lags"},
		{65, "rank 3 lags", "500 of 1000 sweeps, norm 7.2100e-02, about 10 s left, rank 3 lags"},
		{31, "rank 3 lags", "500 of 1000 sweeps, rank 3 lags"},
		{24, "rank 3 lags", "500/1000, rank 3 lags"},
		{20, "rank 3 lags", "500 of 1000 sweeps"},
	} {
		if got := besideBar(e, 1e-8, c.lagging, c.width); got != c.want {
			t.Errorf("%d columns, %q: %q, want %q", c.width, c.lagging, got, c.want)
		}
	}
	const want = "500 of 1000 sweeps, norm 7.2100e-02, 5.214 GLUP/s, about 10 s left"
	if got := besideBar(e, 0, "", 100); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line of the bar begins in the first column also where the terminal has echoed a key, as in ^C.
func TestBarBeginsInTheFirstColumn(t *testing.T) {
	var terminal bytes.Buffer
	b := newBar(&terminal, func() string { return percentOf(0.5) }, func(int) string { return " now" },
		mpb.WithAutoRefresh())
	b.fill(0.5)
	b.bar.Abort(false)
	b.container.Wait()
	if got := terminal.String(); !strings.HasPrefix(got, "\r 50% [") || !strings.HasSuffix(got, "]  now\n") {
		t.Errorf("%q", got)
	}
}

// The bar names the ranks for which the others wait, as long as they do.
func TestBarNamesLaggingRanks(t *testing.T) {
	var terminal bytes.Buffer
	b := newRunBar(&terminal, configs.Solver{MaxIterations: 1000}, 4, mpb.WithAutoRefresh())
	s := newScreen(&terminal, &terminal, look{tag: launch.TagRank})
	s.show(b.bar)
	defer s.hide()
	tell := func(rank int, wait float64) {
		data, err := json.Marshal(stats.Rank{Recent: stats.Recent{HaloWait: &wait}})
		if err != nil {
			t.Fatal(err)
		}
		b.event(roster.Event{Kind: roster.Stats, Rank: rank, Report: data})
	}
	for _, c := range []struct {
		rank int
		wait float64
		want string
	}{
		{0, 0.5, ""}, {1, 0.5, ""}, {2, 0, "rank 2 lags"}, {3, 0.6, "rank 2 lags"}, {0, 0.1, "ranks 0, 2 lag"},
		{0, 0.5, "rank 2 lags"}, {2, 0.5, ""}, {4, 0, ""}, {-1, 0, ""},
	} {
		tell(c.rank, c.wait)
		if got := *b.lagging.Load(); got != c.want {
			t.Errorf("rank %d waits %g: %q, want %q", c.rank, c.wait, got, c.want)
		}
	}
}
