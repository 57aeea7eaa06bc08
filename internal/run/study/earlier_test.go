package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// A study goes on only with the keys and the contents of files that its done runs have had. What these runs have
// replaced by their own, and the files of others, may change.
func TestStudyKeepsItsIdentity(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.npy", "b.npy", "c.npy"} {
		write(t, name, "old")
	}
	runs := []Keys{{"problem.left": 1, "problem.fixed": "b.npy"}, {"problem.left": 2},
		{"problem.top": 4, "problem.fixed": "c.npy"}}
	set := []string{"problem.source=a.npy", "problem.left=0", "problem.top=1", "run.ranks=2", "output.dir=o"}
	was := specOf(t, set, runs...)
	const old = "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4"
	const beside = `{
  "keys": {
    "problem.left": "0",
    "problem.source": "a.npy",
    "problem.top": "1"
  },
  "files": {
    "a.npy": "` + old + `",
    "b.npy": "` + old + `",
    "c.npy": "` + old + `"
  }
}
`
	rm := func(names ...string) {
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range []struct {
		set    []string
		change func()
		want   string // "" if the study goes on
	}{
		{set, func() {}, ""},
		{append(set[:3:3], "run.ranks=3", "halo.depth=2", "device.backend=cpu", "output.dir=p"), func() {}, ""},
		{append(set, "problem.left=5"), func() {}, ""},
		{append(set, "problem.top=2", "grid.nx=9"), func() {},
			`grid.nx was not given and is "9", problem.top was "1" and is "2"`},
		{append(set[:2:2], "solver.tolerance=1e-8"), func() {},
			`problem.top was "1" and is not given, solver.tolerance was not given and is "1e-08"`},
		{set, func() { write(t, "c.npy", "new") }, ""},
		{set, func() { rm("b.npy", "c.npy") }, ""},
		{set, func() { write(t, "a.npy", "new"); write(t, "b.npy", "new") },
			"a.npy has other contents, b.npy has other contents"},
		{[]string{"problem.source=a.npy", "problem.top=1", "problem.fixed=c.npy"}, func() {},
			`problem.fixed was not given and is "c.npy"`},
	} {
		for _, name := range []string{"a.npy", "b.npy", "c.npy"} {
			write(t, name, "old")
		}
		path := fmt.Sprintf("%d.csv", i)
		written(t, was, path, false, met(was, 1), met(was, 2), lineOf(3, runs[2], Result{Failed: "why"}))
		before := contents(t, IdentityFile(path))
		if i == 0 && before != beside {
			t.Errorf("beside the table is %s, want %s", before, beside)
		}
		c.change()
		now := specOf(t, c.set, runs...)
		table, err := openTable(now, path, true)
		if c.want == "" {
			if err != nil {
				t.Errorf("%v: %v", c.set, err)
				continue
			}
			if err := errors.Join(table.Add(met(now, 3)), table.Close()); err != nil {
				t.Fatal(err)
			}
			id, err := readIdentity(path)
			if err != nil || id.Files["b.npy"] != old {
				t.Errorf("%v: then beside it %v, %v", c.set, id, err)
			}
			written(t, now, path, true) // and again
			continue
		}
		want := fmt.Sprintf("--table %q: its runs are of another study: %s; go on with the keys and files that its "+
			"runs had, or name another table", path, c.want)
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", c.set, err, want)
		}
		if after := contents(t, IdentityFile(path)); after != before {
			t.Errorf("%v: beside the table was %s, and is %s", c.set, before, after)
		}
	}
}

// A study that has hashes of fields goes on with hashes.
func TestStudyKeepsItsHashes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.csv")
	s := specOf(t, nil, two...)
	written(t, s, path, false, met(s, 1))
	s.hash = true
	want := fmt.Sprintf("--table %q: its runs are of another study: --hash was not given and is \"true\"; go on with "+
		"the keys and files that its runs had, or name another table", path)
	if _, err := openTable(s, path, true); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A run whose file has changed since the study began is refused, and has failed if that is seen when it has ended: the
// runs before had another problem.
func TestFilesOfAStudyStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.npy")
	missing := filepath.Join(t.TempDir(), "b.npy")
	write(t, path, "old")
	s := specOf(t, []string{"problem.source=" + path}, Keys{}, Keys{"problem.source": missing})
	var jobs []Job
	for run := range s.Runs {
		j, err := s.Job(run + 1)
		if err != nil { // it is for the ranks to say that a file is no array, or missing
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	done := Result{Report: &output.Report{Verdict: configs.Met}}
	if l := s.Line(jobs[0], done); l.Verdict != "met" || l.Reason != "" {
		t.Errorf("%+v", l)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	write(t, missing, "new")
	for i, path := range []string{path, missing} {
		want := fmt.Sprintf("problem.source %q: the file has changed since the study began", path)
		if _, err := s.Job(i + 1); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if l := s.Line(jobs[i], done); l.Verdict != "failed" || l.Reason != want || l.Run != i+1 {
			t.Errorf("%+v, want %s", l, want)
		}
	}
	if l := s.Line(jobs[0], Result{Refused: "why"}); l.Verdict != "refused" || l.Reason != "why" {
		t.Errorf("%+v", l)
	}
}

// A large file does not keep a study that is to end.
func TestStudyEndsWhileItReadsFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.npy")
	write(t, path, "")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	base, err := configs.LoadBase(configs.Options{Set: []string{"problem.source=" + path}})
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(stopped) })
	if _, err := NewSpec(ctx, base, []Keys{{}}, From{}, false); !errors.Is(err, stopped) {
		t.Errorf("%v, want %v", err, stopped)
	}
}

// A file that would go to standard output keeps its name, so that the checks say why no run of a study has it.
func TestNoStandardOutput(t *testing.T) {
	t.Parallel()
	j, err := specOf(t, nil, Keys{"output.history": configs.Stdout}).Job(1)
	if err != nil || j.Config.Output.History != configs.Stdout {
		t.Errorf("%q, %v", j.Config.Output.History, err)
	}
}
