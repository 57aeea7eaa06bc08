package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// fileSet is the part of report.json that says which files belong together.
type fileSet struct {
	RunID string `json:"run_id"`
	Hash  string `json:"field_hash"`
	Files []struct{ Name, SHA256 string }
}

// oneSet checks that all four files in dir are of the report's run, and returns the id of the run.
func oneSet(t *testing.T, dir string) string {
	t.Helper()
	var set fileSet
	if err := json.Unmarshal([]byte(readText(t, dir, "report.json")), &set); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range set.Files {
		names = append(names, f.Name)
		switch f.Name {
		case "report.json":
			continue
		case "field.npy":
			if fieldHashOf(t, filepath.Join(dir, f.Name)) != set.Hash {
				t.Errorf("%s is not of run %s, as the report is", f.Name, set.RunID)
			}
			continue
		}
		if sum := sha256.Sum256([]byte(readText(t, dir, f.Name))); hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s is not of run %s, as the report is", f.Name, set.RunID)
		}
	}
	if want := []string{"history.csv", "field.png", "field.npy", "report.json"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	return set.RunID
}

var short = set("grid.nx=64", "grid.ny=64", "solver.max_iterations=10")

// finished runs a short run in dir, which must succeed, and returns its id.
func finished(t *testing.T, dir string) string {
	t.Helper()
	mustRun(t, dir, "launcher", append(short, "-np", "2")...)
	return oneSet(t, filepath.Join(dir, "out"))
}

// watched returns a watcher of dir, which must exist.
func watched(t *testing.T, dir string) *fsnotify.Watcher {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	return w
}

// awaitMade waits until a file of this name is created, or a file renamed to it, in the directory that w watches.
func awaitMade(t *testing.T, w *fsnotify.Watcher, name string, l *live) {
	t.Helper()
	quiet, late := l.quiet, (<-chan time.Time)(nil)
	for {
		select {
		case e := <-w.Events:
			if e.Has(fsnotify.Create) && filepath.Base(e.Name) == name {
				return
			}
		case err := <-w.Errors:
			t.Fatal(err)
		case <-quiet: // events from before the end may still be on their way
			quiet, late = nil, time.After(10*time.Second)
		case <-late:
			t.Fatalf("the run ended without %s", name)
		}
	}
}

// A second Ctrl-C at any moment of the commit leaves files of one run only, and the launcher names that run.
func TestSecondInterruptWhileOutputsGetTheirNames(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"history.csv", "field.npy", "report.json"} { // the first, one between, the last
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			earlier := finished(t, dir)
			l := begin(t, dir, "-np", "2")
			w := watched(t, out)
			l.signal(os.Interrupt)
			awaitMade(t, w, at, l)
			_ = l.cmd.Process.Signal(os.Interrupt) // the run may be over
			code, output := l.end()
			if code != 130 {
				t.Errorf("exit code %d, want 130\n%s", code, output)
			}
			l.leavesNothing()
			id := oneSet(t, out)
			asBefore := strings.Contains(output, "the ranks were killed; outputs of earlier runs are as they were\n")
			inPlace := strings.Contains(output, "the ranks were killed; the outputs of this run are in place: "+
				"out/history.csv, out/field.png, out/field.npy, out/report.json\n") ||
				strings.Contains(output, "Result         INTERRUPTED after ")
			if asBefore == inPlace || asBefore != (id == earlier) {
				t.Errorf("the files are of run %s, those of the earlier run of %s\n%s", id, earlier, output)
			}
		})
	}
}

// If a file cannot get its name, the next run in the directory completes the commit, even if it is none that writes.
// That it does so where a run is killed at any step of the commit is proven in package output. The next run removes the
// files of one that is killed while it sweeps.
func TestNextRunTidiesUp(t *testing.T) {
	t.Parallel()
	t.Run("a file could not get its name", func(t *testing.T) {
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		l := begin(t, dir, "-np", "2")
		taken := filepath.Join(out, "field.npy")
		if err := errors.Join(os.Mkdir(taken, 0o777), l.cmd.Process.Signal(os.Interrupt)); err != nil {
			t.Fatal(err)
		}
		l.ends(1, `put the outputs in place: out/field\.npy exists and is no regular file; out has none of the files `+
			`of run .*; the rest \(history\.csv, field\.png, field\.npy, report\.json\) is complete and lies in `+
			`out/\.jacobi-\S+\. The next run in out completes that `)
		run(t, dir, "launcher", append(append(short, set("output.field=other.npy")...), "-np", "2")...).fails(t, 1,
			"and the rest cannot be: out/field.npy exists")
		if err := os.Remove(taken); err != nil {
			t.Fatal(err)
		}
		mustRun(t, dir, "launcher", append(set("grid.nx=64", "grid.ny=64"), "doctor", "-np", "1")...)
		oneSet(t, out)
		if r := readReport(t, out); r.StopReason != "interrupted" {
			t.Errorf("the files are of a run that ended as %s, want interrupted", r.StopReason)
		}
	})
	t.Run("while it sweeps", func(t *testing.T) {
		dir := t.TempDir()
		earlier := finished(t, dir)
		l := begin(t, dir, "-np", "2")
		l.signal(os.Kill)
		l.ends(-1)
		left, err := filepath.Glob(filepath.Join(dir, "out", ".jacobi-*", "*.*"))
		left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == "list.draft" })
		if err != nil || len(left) != 4 {
			t.Fatalf("left: %v, %v", left, err)
		}
		if id := oneSet(t, filepath.Join(dir, "out")); id != earlier {
			t.Errorf("the files are of run %s, want %s", id, earlier)
		}
		next := run(t, dir, "launcher", append(short, "-np", "2")...)
		want := regexp.MustCompile(fmt.Sprintf(
			`launcher: out: removed %d unfinished files \(\d[0-9.]* [KM]iB\) of runs that were killed\n`, len(left)))
		if next.code != 0 || !want.MatchString(next.stderr) {
			t.Errorf("exit code %d\n%s\nwant 0 and %v", next.code, next.stderr, want)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(entries) != 4 {
			t.Errorf("%v, %v; want four files", entries, err)
		}
	})
}

// Only one run at a time may use a directory. Others are refused before anything starts, and the error names the
// holder.
func TestOneRunADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := begin(t, dir, onRanks(2, "checkpoint.every=1h", "checkpoint.dir=checkpoints")...)
	holder := fmt.Sprintf(`in use by run \S+, process %d on \S+, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d; `+
		`one run at a time can use it`, l.cmd.Process.Pid)
	small := set("grid.nx=64", "grid.ny=64")
	other := append(small, set("output.field=other.npy", "output.picture=", "output.history=", "output.report=")...)
	elsewhere := append(set(append(slices.Clone(endless), "output.dir=elsewhere")...),
		set("checkpoint.every=1h", "checkpoint.dir=checkpoints")...)
	for _, c := range []struct {
		program, key string
		args         []string
	}{
		{"launcher", `output.dir "out": `, append(other, "-np", "2")},
		{"launcher", `output.dir "out": `, append(small, "-np", "2", "--dry-run")},
		{"launcher", `output.dir "out": `, append(small, "doctor", "-np", "2")},
		{"launcher", `output.dir "out": `, append(small, "bench", "--ranks", "1", "--repeat", "1")},
		{"jacobi-rank", `output.dir "out": `, small},
		{"launcher", `checkpoint.dir "checkpoints": `, append(elsewhere, "-np", "2")},
		{"jacobi-rank", `checkpoint.dir "checkpoints": `, elsewhere},
	} {
		out := run(t, dir, c.program, c.args...)
		all := strings.Join(strings.Fields(out.stdout+out.stderr), " ") // doctor breaks its lines
		want := regexp.MustCompile(c.key + holder)
		if out.code != 1 || !want.MatchString(all) || strings.Contains(all, "sweeps (") {
			t.Errorf("%s %v: exit code %d\n%s\nwant 1 and %v", c.program, c.args, out.code, all, want)
		}
	}
	l.signal(os.Interrupt)
	l.ends(130)
	for _, held := range []string{"out", "checkpoints"} {
		if _, err := os.Stat(filepath.Join(dir, held, ".jacobi-lock")); err == nil {
			t.Errorf("%s is still locked", held)
		}
	}
	oneSet(t, filepath.Join(dir, "out"))
}

// smallDisk returns a directory and an output directory in it on a file system of this size.
func smallDisk(t *testing.T, size string) (dir, out string) {
	t.Helper()
	dir = t.TempDir()
	out = filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", out, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("NOT RUN, a tmpfs cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(out, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, out
}

// fill uses up the free space of dir.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4<<10))
	}
}

// emptied releases the reserved space of an unfinished file: all but the header of the field, and the unused part of
// the history.
func emptied(t *testing.T, out, name string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(out, ".jacobi-*", name))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v: want one unfinished %s", files, err, name)
	}
	f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const page, hole = 4 << 10, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	from := int64(page)
	if name == "history.csv" {
		fi, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		from = (fi.Size() + page - 1) / page * page
	}
	if err := unix.Fallocate(int(f.Fd()), hole, from, 64<<20); err != nil {
		t.Fatal(err)
	}
}

// A disk that other programs fill while a run sweeps costs none of the run's files, because their space is reserved.
// Without reserved space the run gives up the field to save the other files, and says so.
func TestFullDiskKeepsReportAndHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		emptied []string
		code    int
		want    string
	}{
		{"reserved", nil, 130, ""},
		{"no room for the field", []string{"field.npy"}, 1,
			`launcher: out/field\.npy is not written: rank \d on \S+: write field rows \[\d+, \d+\): .*` +
				`: no space left on device\n$`},
		{"no room for the history", []string{"history.csv"}, 1,
			`launcher: out/field\.npy is not written: the disk is full; left out to make room for the history\n$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, out := smallDisk(t, "12m")
			l := begin(t, dir, "-np", "2")
			for _, name := range c.emptied {
				emptied(t, out, name)
			}
			fill(t, out)
			l.signal(os.Interrupt)
			code, output := l.end()
			if code != c.code || !regexp.MustCompile(c.want).MatchString(output) {
				t.Errorf("exit code %d\n%s\nwant %d and %s", code, output, c.code, c.want)
			}
			l.leavesNothing()
			r := readReport(t, out)
			history := readText(t, out, "history.csv")
			if norms := normsOf(t, string(history)); len(norms) != r.Sweeps || r.Sweeps == 0 {
				t.Errorf("%d norms of %d sweeps", len(norms), r.Sweeps)
			}
			if _, err := os.Stat(filepath.Join(out, "field.npy")); (err == nil) != (c.code == 130) {
				t.Errorf("field.npy: %v", err)
			}
			if c.code == 130 {
				oneSet(t, out)
			}
		})
	}
}

// A disk without room for all files together is refused before the sweeps.
func TestSpaceForAllFilesIsWanted(t *testing.T) {
	t.Parallel()
	dir, _ := smallDisk(t, "2m") // the field alone takes 1 MiB
	out := run(t, dir, "launcher", onRanks(2, "grid.nx=512", "grid.ny=512")...)
	const want = `launcher: output.dir "out": not enough space: 7.2 MiB (7564954 bytes) needed, ` +
		`2.0 MiB (2097152 bytes) available`
	if out.code != 1 || !strings.Contains(out.stderr, want) {
		t.Errorf("exit code %d\n%s\nwant 1 and %s", out.code, out.stderr, want)
	}
}

// "-" stands for standard output, which then has nothing else.
func TestStandardOutput(t *testing.T) {
	t.Parallel()
	problem := set("grid.nx=64", "grid.ny=64", "solver.max_iterations=20")
	want, _ := solve(t, append(problem, "-np", "2")...)
	for _, program := range []string{"launcher", "jacobi-rank"} {
		dir := t.TempDir()
		out := run(t, dir, program, append(problem, set("output.history=-", "output.field=", "output.picture=")...)...)
		summary := strings.Contains(out.stderr, "\n  Field SHA-256  "+want.sha)
		if out.code != 0 || out.stdout != want.history || !summary {
			t.Errorf("%s: exit code %d\n%s\n%s", program, out.code, out.stdout, out.stderr)
		}
		if entries, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v; want report.json alone", program, entries, err)
		}
		out = run(t, dir, program, append(problem, set("output.report=-", "output.field=", "output.picture=")...)...)
		var r report
		if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || out.code != 0 || r.FieldHash != want.sha {
			t.Errorf("%s: exit code %d, %v\n%s\n%s", program, out.code, err, out.stdout, out.stderr)
		}
	}
}

// A named pipe in output.dir is reported, and no program waits for it.
func TestPipesInOutputDir(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".jacobi-lock", "field.npy"} {
		dir := t.TempDir()
		path := filepath.Join("out", name)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "out"), 0o777),
			syscall.Mkfifo(filepath.Join(dir, path), 0o666)); err != nil {
			t.Fatal(err)
		}
		run(t, dir, "launcher", onRanks(2, "grid.nx=64", "grid.ny=64")...).fails(t, 1, path)
	}
}

// A run says whose files it replaces, and leaves none of them beside its own, with a launcher and without.
func TestRunReplacesAnother(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"launcher", "jacobi-rank"} {
		dir := t.TempDir()
		first := mustRun(t, dir, "launcher", append(short, set("run.name=first", "run.ranks=2", "output.every=5",
			"output.probes=c=(0.5,0.5)", "output.picture=first.png", "output.trace=trace.json",
			"output.field=field.vti")...)...)
		writeText(t, "", dir, "out", "mine.csv")
		out := mustRun(t, dir, program, append(short, set("run.ranks=1")...)...)
		const text = `out has the files of run \S+ \(first \(.*\)\), which ended on [-0-9]+ [:0-9]+: ` +
			`this run replaces them, and removes first\.png, field\.vti, trace\.json, probes\.csv, ` +
			`field\.pvd, field-\*\.vti \(3 fields\)\n`
		if strings.Contains(first.stderr, "replaces") || !regexp.MustCompile(text).MatchString(out.stderr) {
			t.Errorf("%s: want only %s in\n%s%s", program, text, first.stderr, out.stderr)
		}
		files, err := filepath.Glob(filepath.Join(dir, "out", "*"))
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		if want := []string{"field.npy", "field.png", "history.csv", "mine.csv", "report.json"}; err != nil ||
			!slices.Equal(files, want) {
			t.Errorf("%s: files %q, %v, want %q", program, files, err, want)
		}
	}
}
