package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jacobi/internal/run/study"
)

// Runs make the files that a run file names only if others ask for them; a run file with all kinds is no reason to
// refuse.
func TestStudyMakesOnlyFilesThatAreAsked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.yaml")
	const text = `{output: {field: f.npy, picture: p.png, history: h.csv, report: r.json, gradient: true,
  materials: true, probes: "a=(0,0)", probes_every: 5 sweeps}, grid: {nx: 9, ny: 9}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{config: file}
	for _, c := range []struct {
		set  []string
		want []string
	}{
		{nil, []string{"probes.csv"}},
		{[]string{"output.field=f.npy", "output.gradient=true"},
			[]string{"f-7.npy", "f-7-flux_x.npy", "f-7-flux_y.npy", "probes.csv"}},
	} {
		o.set = c.set
		base, err := o.base()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := study.StartConfig(base.Config()); err != nil {
			t.Error(err)
		}
		runs := slices.Repeat([]study.Keys{{"grid.nx": 17}}, 7)
		s, err := study.NewSpec(t.Context(), base, runs, study.From{}, false)
		if err != nil {
			t.Fatal(err)
		}
		job, err := s.Job(7)
		if got := job.Config.Output.Names(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: files %v, %v; want %v", c.set, got, err, c.want)
		}
	}
}

// A warning about the problems of many runs is shown once.
func TestStudyWarns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := studying{screen: newScreen(&out, &out, look{})}
	for id := 1; id <= 3; id++ {
		s.warn(study.Job{ID: id}, "its values have no effect")
	}
	const want = "launcher: warning: run 1: its values have no effect\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// The text beside a study's bar fits, and has the most that does.
func TestStudyProgressFits(t *testing.T) {
	t.Parallel()
	at := studyAt{lines: 57, all: 100, rate: 312.4, left: 75 * time.Second, amiss: "1 missed, 2 refused"}
	for _, c := range []struct {
		width int
		want  string
	}{
		{80, "57 of 100 runs, 312 runs/s, about 1m20s left, 1 missed, 2 refused"},
		{64, "57 of 100 runs, 312 runs/s, about 1m20s left"},
		{40, "57 of 100 runs, about 1m20s left"},
		{20, "57 of 100 runs"},
		{5, ""},
	} {
		if got := at.text(c.width); got != c.want {
			t.Errorf("%d columns: %q, want %q", c.width, got, c.want)
		}
	}
	if got := (studyAt{all: 3}).text(80); got != "0 of 3 runs" {
		t.Errorf("at the start: %q", got)
	}
}
