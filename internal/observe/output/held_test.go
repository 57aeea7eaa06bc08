package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
)

// partialsOf makes complete partial files of a run. Each contains its own name.
func partialsOf(t *testing.T, dir, run string, names ...string) (files []string) {
	t.Helper()
	for _, name := range names {
		p, err := Dir(dir).Create(name, run, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := finish(p, []byte(run+" "+name)); err != nil {
			t.Fatal(err)
		}
		files = append(files, p.File())
	}
	return files
}

func wantText(t *testing.T, dir, name, want string) {
	t.Helper()
	if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", name, b, err, want)
	}
}

// Commit names all files together, and only once. The file for standard output gets no name.
func TestCommit(t *testing.T) {
	dir := t.TempDir()
	h := hold(t, dir)
	_, _, err := Hold(dir, "other")
	if _, held := errors.AsType[*dirlock.HeldError](err); !held {
		t.Fatalf("two runs hold one directory: %v", err)
	}
	if want := fmt.Sprintf("output.dir %q: in use by run run, ", dir); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	files := partialsOf(t, dir, "run", "field.npy", configs.Stdout, "report.json")
	unfinished := partialsOf(t, dir, "run", "field.png")
	for range 2 { // the reply to the first request may have been lost
		if err := h.Commit(files); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Commit(unfinished); err == nil {
		t.Error("a second set was committed")
	}
	var out strings.Builder
	if err := h.CopyTo(&out); err != nil || out.String() != "run -" {
		t.Errorf("standard output %q, %v", &out, err)
	}
	if got := h.Committed(); len(got) != 2 || got[0] != "field.npy" || got[1] != "report.json" {
		t.Errorf("committed %q", got)
	}
	release(t, h)
	wantFiles(t, dir, "field.npy", "report.json")
	wantText(t, dir, "field.npy", "run field.npy")
}

// If one file cannot get its name, no file is replaced.
func TestCommitAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		last  string // the file with the fault
		fault func(path, partial string) error
		want  string
	}{
		{"report.json", func(path, _ string) error { return os.Mkdir(path, 0o777) }, "PATH now is no regular file"},
		{"report.json", func(path, _ string) error { return unix.Mkfifo(path, 0o666) }, "PATH now is no regular file"},
		{"u.zarr", func(path, _ string) error { return os.Mkdir(path, 0o777) },
			"PATH now is no Zarr group of format 3"},
		{"report.json", func(_, partial string) error { return os.Remove(partial) },
			"lstat PARTIAL: no such file or directory"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "field.npy"), []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		h := hold(t, dir)
		files := partialsOf(t, dir, "run", "field.npy", c.last)
		path, partial := filepath.Join(dir, c.last), filepath.Join(dir, files[1])
		if err := c.fault(path, partial); err != nil {
			t.Fatal(err)
		}
		want := "put the outputs in place: " + strings.NewReplacer("PATH", path, "PARTIAL", partial).Replace(c.want)
		if err := h.Commit(files); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if got := h.Committed(); got != nil {
			t.Errorf("%s: committed %q", want, got)
		}
		release(t, h)
		wantText(t, dir, "field.npy", "old")
	}
}

// If a run is killed during its commit, at any point, the next run completes the commit.
func TestHoldFinishesACommit(t *testing.T) {
	const names = "field.npy, history.csv, report.json"
	for done := range 4 {
		dir := t.TempDir()
		files := partialsOf(t, dir, "killed", strings.Split(names, ", ")...)
		b, err := json.Marshal(journal{Run: "killed", Files: files})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, journalFile), b, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := rename(dir, files[:done], "killed", nil); err != nil {
			t.Fatal(err)
		}
		h, notes, err := Hold(dir, "run")
		if err != nil {
			t.Fatal(err)
		}
		want := "a run was killed while it put its outputs in place; that is done now: " +
			dir + " has " + names + " of run killed"
		if len(notes) != 1 || notes[0] != want {
			t.Errorf("notes %q, want %q", notes, want)
		}
		release(t, h)
		wantFiles(t, dir, "field.npy", "history.csv", "report.json")
		wantText(t, dir, "report.json", "killed report.json")
	}
}

// The leftovers of killed runs are removed, and their size is reported. Files of the user stay.
func TestHoldRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	p, err := Dir(dir).Create("field.npy", "killed", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	partialsOf(t, dir, "dotted.run", "a.b.csv")
	kept := []string{".hidden.partial", ".my.own.file.partial", "field.npy"}
	for _, name := range kept {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := CheckRoom(dir, 1<<10); err != nil {
		t.Error(err)
	}
	h, notes, err := Hold(dir, "run")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^` + dir + `: removed 2 unfinished files \(1\.0 MiB\) of runs that were killed$`)
	if len(notes) != 1 || !want.MatchString(notes[0]) {
		t.Errorf("notes %q, want %v", notes, want)
	}
	release(t, h)
	wantFiles(t, dir, kept...)
}

// Another user cannot make a run wait at a FIFO or rename a file that is not the run's.
func TestPlantedJournals(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"FIFO": func(path string) error { return unix.Mkfifo(path, 0o666) },
		"path": func(path string) error {
			const above = `{"run": "r", "files": ["../.x.r.ABCDEFGHIJKLMNOPQRSTUVWXYZ.partial"]}`
			return os.WriteFile(path, []byte(above), 0o666)
		},
	} {
		dir := t.TempDir()
		if err := plant(filepath.Join(dir, journalFile)); err != nil {
			t.Fatal(err)
		}
		h, notes, err := Hold(dir, "run")
		switch {
		case name == "FIFO" && (err == nil || !strings.Contains(err.Error(), "a named pipe")):
			t.Errorf("%s: %v", name, err)
		case name == "path" && (err != nil || len(notes) != 1 || !strings.Contains(notes[0], "is not a partial file")):
			t.Errorf("%s: %q, %v", name, notes, err)
		}
		if h != nil {
			release(t, h)
		}
	}
}
