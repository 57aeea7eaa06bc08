package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/solver"
)

func TestCheckDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, CheckDir(dir))
	wantFiles(t, dir)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	// These fail for root, too: a directory below a file, and one in /proc.
	for bad, why := range map[string]string{file: "not a directory", filepath.Join(file, "x"): "not a directory",
		"/proc/self": ""} {
		err := CheckDir(bad)
		if err == nil || !strings.HasPrefix(err.Error(), `output.dir "`+bad+`": cannot be`) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("CheckDir(%q): %v", bad, err)
		}
	}
}

func TestCheckNames(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "taken"), 0o755))
	good := configs.Output{Dir: dir, Field: "field.npy", History: "history.csv", Report: "report.json"}
	if err := CheckNames(good); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"../field.npy": "output.picture: ", "..": "output.picture: ", "a/b": "output.picture: ",
		"taken": "no regular file",
	} {
		o := good
		o.Picture = name
		if err := CheckNames(o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("output.picture %q: %v, want %q", name, err, want)
		}
	}
}

// staged stages complete files of a run. Each contains the run and its own name.
func staged(t *testing.T, h *Held, names ...string) {
	t.Helper()
	for _, name := range names {
		f, err := h.Create(name, 0)
		if err == nil {
			err = write(f, []byte(h.runID+" "+name))
		}
		must(t, err)
	}
}

func wantText(t *testing.T, dir, name, want string) {
	t.Helper()
	if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", name, b, err, want)
	}
}

// Commit puts all files in place together, and only once. The file for standard output gets no name.
func TestCommit(t *testing.T) {
	o := outputs(t.TempDir())
	o.History = configs.Stdout
	h := hold(t, o)
	_, _, err := Hold(o, "other")
	if _, held := errors.AsType[*dirlock.HeldError](err); !held {
		t.Fatalf("two runs hold one directory: %v", err)
	}
	if want := fmt.Sprintf("output.dir %q: in use by run run, ", o.Dir); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	names := []string{"field.npy", configs.Stdout, "report.json"}
	staged(t, h, append(names, "field.png")...)
	for range 2 { // the reply to the first request may have been lost
		must(t, h.Commit(names))
	}
	if err := h.Commit([]string{"field.png"}); err == nil {
		t.Error("a second set was committed")
	}
	var out strings.Builder
	if err := h.CopyTo(&out); err != nil || out.String() != "run -" {
		t.Errorf("standard output %q, %v", &out, err)
	}
	if got, err := h.Committed(); err != nil || !slices.Equal(got, []string{"field.npy", "report.json"}) {
		t.Errorf("committed %q, %v", got, err)
	}
	release(t, h)
	wantFiles(t, o.Dir, "field.npy", "report.json")
	wantText(t, o.Dir, "field.npy", "run field.npy")
}

// If one file cannot get its name, no file is replaced, and what is complete stays for the next run.
func TestCommitAllOrNothing(t *testing.T) {
	for _, fault := range []func(path string, mode uint32) error{unix.Mkdir, unix.Mkfifo} {
		o := outputs(t.TempDir())
		must(t, os.WriteFile(filepath.Join(o.Dir, "field.npy"), []byte("old"), 0o666))
		h := hold(t, o)
		names := []string{"field.npy", "report.json"}
		staged(t, h, names...)
		path := filepath.Join(o.Dir, "report.json")
		must(t, fault(path, 0o777))
		want := fmt.Sprintf("put the outputs in place: %s exists and is no regular file; %s has none of the files of "+
			"run run; the rest (field.npy, report.json) is complete and lies in %s. The next run in %s completes that",
			path, o.Dir, h.path(""), o.Dir)
		for range 2 {
			if err := h.Commit(names); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if got, err := h.Committed(); got != nil || err == nil || err.Error() != want {
			t.Errorf("committed %q, %v", got, err)
		}
		release(t, h)
		wantText(t, o.Dir, "field.npy", "old")

		_, _, err := Hold(o, "next")
		if why := "the rest cannot be: " + path + " exists and is no regular file; "; err == nil ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("the next run does not say what keeps it: %v", err)
		}
		must(t, os.Remove(path))
		h, notes, err := Hold(o, "next")
		must(t, err)
		if want := "a run did not put all of its outputs in place; that is done now: " + o.Dir +
			" has field.npy, report.json of run run"; !slices.Equal(notes, []string{want}) {
			t.Errorf("%q, want %q", notes, want)
		}
		release(t, h)
		wantFiles(t, o.Dir, names...)
		wantText(t, o.Dir, "field.npy", "run field.npy")
	}
}

// A file that is not staged is found before any other one is put in place.
func TestCommitOfAMissingFile(t *testing.T) {
	o := outputs(t.TempDir())
	h := hold(t, o)
	staged(t, h, "field.npy")
	want := "put the outputs in place: lstat " + h.path("report.json") + ": no such file or directory; they lie in " +
		h.path("") + " until the next run in " + o.Dir
	if err := h.Commit([]string{"field.npy", "report.json"}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	release(t, h)
	wantFiles(t, o.Dir, h.name)
}

// Only the files of the run can be created, each under its own name.
func TestOtherFilesAreRefused(t *testing.T) {
	o := outputs(t.TempDir())
	o.Every = configs.Interval{Iterations: 5}
	h := hold(t, o)
	defer release(t, h)
	for _, name := range []string{"passwd", "../field.npy", "field.npy/x", "field.npy/zarr.json", "", ".", "list",
		"field-5.npy", "other.png"} {
		want := fmt.Sprintf("%q is no file of this run", name)
		_, created := h.Create(name, 0)
		_, _, opened := h.Open(name)
		for _, err := range []error{created, opened, h.Remove(name), h.Commit([]string{name})} {
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if err := h.Put(name); err == nil || err.Error() != "put "+name+" in place: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := h.Put("field-000000005.npy"); err == nil {
		t.Error("a file that is not there is in place")
	}
}

// The room of a directory can be looked at while runs put files in place there.
func TestRoomBesideOtherRuns(t *testing.T) {
	h, _, err := Hold(outputs(t.TempDir()), "run")
	must(t, err)
	defer release(t, h)
	var busy errgroup.Group
	done := make(chan struct{})
	busy.Go(func() error {
		path, place := h.path("field.npy"), h.final("field.npy")
		for {
			select {
			case <-done:
				return nil
			default:
				if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Rename(path, place)); err != nil {
					return err
				}
			}
		}
	})
	for range 5000 {
		_, _, err := h.size()
		if err = errors.Join(CheckRoom(h.dir, 1), err); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	if err := busy.Wait(); err != nil {
		t.Error(err)
	}
}

// The unfinished files of killed runs are removed, and their size is reported. Files of the user stay, and so does what
// is not this user's alone.
func TestHoldRemovesLeftovers(t *testing.T) {
	o := outputs(t.TempDir())
	killed, _, err := Hold(o, "killed")
	must(t, err)
	f, err := killed.Create("field.npy", 1<<20)
	must(t, err)
	staged(t, killed, "history.csv")
	if err := errors.Join(f.Close(), killed.lock.Release()); err != nil { // as at the end of its process
		t.Fatal(err)
	}
	open := filepath.Join(o.Dir, ".jacobi-open")
	must(t, errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o755)))
	kept := []string{".jacobi-open", ".mine.partial", "field.npy"}
	for _, name := range kept[1:] {
		must(t, os.WriteFile(filepath.Join(o.Dir, name), nil, 0o666))
	}
	if err := CheckRoom(o.Dir, 1<<10); err != nil {
		t.Error(err)
	}
	h, notes, err := Hold(o, "run")
	must(t, err)
	want := regexp.MustCompile(`^` + o.Dir + `: removed 2 unfinished files \(1\.0 MiB\) of runs that were killed$`)
	if len(notes) != 1 || !want.MatchString(notes[0]) {
		t.Errorf("notes %q, want %v", notes, want)
	}
	release(t, h)
	wantFiles(t, o.Dir, kept...)
}

// The unfinished files of a run take room.
func TestRoomBesideARun(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED: the room of a small disk; mounting it needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	h := hold(t, outputs(dir))
	f, err := h.Create("field.npy", 600<<10)
	must(t, err)
	if err := CheckRoom(dir, 600<<10); !errors.Is(err, ErrNoSpace) {
		t.Errorf("room for two fields on a disk for one: %v", err)
	}
	must(t, f.Close())
	release(t, h)
}

// listed returns the names of the files in dir, but for hidden ones.
func listed(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Files of a series get their names one by one, and the index lists them in the order of their sweeps. Those of an
// earlier run are removed once.
func TestSeriesInPlace(t *testing.T) {
	dir := t.TempDir()
	o := configs.Output{Dir: dir, Field: `a&b.vti`, Every: configs.Interval{Iterations: 5}}
	h := hold(t, o)
	defer release(t, h)
	for _, name := range []string{"a&b-000000005.vti", "a&b-000000010.vti", "a&b-1000000000.vti", "a&b-10.vti",
		"a&b-000000010.npy", "a&b.pvd"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644))
	}
	must(t, h.TrimSeries(5))
	if got, want := listed(t, dir), []string{"a&b-000000005.vti", "a&b-000000010.npy",
		"a&b-10.vti"}; !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
	for range 2 { // the reply to the first request may have been lost
		for _, name := range []string{o.SeriesFile(1234567890), o.SeriesFile(10)} {
			staged(t, h, name)
			for range 2 {
				must(t, h.Put(name))
			}
		}
		must(t, h.TrimSeries(5))
	}
	wantText(t, dir, "a&b-000000010.vti", "run a&b-000000010.vti")
	wantText(t, dir, "a&b.pvd", `<?xml version="1.0"?>
<VTKFile type="Collection" version="1.0">
  <Collection>
    <DataSet timestep="5" part="0" file="a&amp;b-000000005.vti"/>
    <DataSet timestep="10" part="0" file="a&amp;b-000000010.vti"/>
    <DataSet timestep="1234567890" part="0" file="a&amp;b-1234567890.vti"/>
  </Collection>
</VTKFile>
`)
}

// A group with anything that no run wrote is neither replaced nor removed: it is refused before the run.
func TestGroupWithOtherFiles(t *testing.T) {
	o := configs.Output{Dir: t.TempDir(), Field: "u.zarr", Every: configs.Interval{Iterations: 5}}
	h := hold(t, o)
	defer release(t, h)
	m := solver.Mesh{NX: 8, NY: 5, DType: solver.Float32}
	group := func(name string) {
		t.Helper()
		f, err := CreateField(h, name, m, FormatOf(name, m, 0.5, 2))
		must(t, err)
		must(t, f.Finish())
	}
	for _, name := range []string{"u.zarr", o.SeriesFile(10), o.SeriesFile(15)} {
		group(name)
		must(t, h.Put(name))
	}
	must(t, CheckNames(o))
	mine := filepath.Join(o.Dir, "u.zarr", "mine")
	must(t, os.Mkdir(mine, 0o777))
	fault := filepath.Dir(mine) + " exists and has mine, which no run wrote; remove or rename the directory"
	if err := CheckNames(o); err == nil || err.Error() != `output.field "u.zarr": `+fault {
		t.Errorf("%v, want %s", err, fault)
	}
	group("u.zarr")
	if err := h.Put("u.zarr"); err == nil || err.Error() != "put u.zarr in place: "+fault {
		t.Errorf("%v, want %s", err, fault)
	}
	mine = filepath.Join(o.Dir, o.SeriesFile(15), "x", "mine")
	must(t, os.WriteFile(mine, nil, 0o666))
	fault = "remove the series of an earlier run: " + filepath.Dir(filepath.Dir(mine)) + " exists and has x/mine, " +
		"which no run wrote; remove or rename the directory"
	if err := h.TrimSeries(5); err == nil || err.Error() != fault {
		t.Errorf("%v, want %s", err, fault)
	}
	if got := listed(t, o.Dir); !slices.Equal(got, []string{o.SeriesFile(15), "u.zarr"}) {
		t.Errorf("%v are left", got)
	}
}

// The file of the probes has its name while it grows. It begins with the whole lines of an earlier run from before the
// first sweep, if that run has written it.
func TestGrowingProbes(t *testing.T) {
	const lines = ProbesHeader + "0,a,1,1,0,0,1\n7,a,1,1,0,0,2\n14,a,1,1,0,0,3\n21,a,1,1"
	for _, c := range []struct {
		old    string
		before int
		want   string
	}{
		{"", 0, ProbesHeader},
		{"", 7, ProbesHeader},
		{lines, 0, ProbesHeader},
		{lines, 8, ProbesHeader + "0,a,1,1,0,0,1\n7,a,1,1,0,0,2\n"},
		{lines, 100, ProbesHeader + "0,a,1,1,0,0,1\n7,a,1,1,0,0,2\n14,a,1,1,0,0,3\n"},
		{"0,a,1,1,0,0,1\n", 100, ProbesHeader},
		{ProbesHeader + "x\n1,b\n", 100, ProbesHeader},
	} {
		dir := t.TempDir()
		if c.old != "" {
			must(t, os.WriteFile(filepath.Join(dir, "probes.csv"), []byte(c.old), 0o644))
		}
		h := hold(t, configs.Output{Dir: dir, Probes: "a=[1,1]", ProbesEvery: configs.Interval{Iterations: 7}})
		p, end, err := h.GrowProbes(c.before)
		must(t, err)
		g := NewGrowing(p, end)
		for _, line := range []string{"8,new\n", "9,new\n"} {
			wantText(t, dir, "probes.csv", c.want)
			_, err := g.Write([]byte(line))
			must(t, err)
			c.want += line
		}
		_, err = g.Finish()
		must(t, err)
		release(t, h)
		wantText(t, dir, "probes.csv", c.want)
	}
}

// filling is a file on a disk with little room.
type filling struct {
	File
	room int64
}

func (f *filling) WriteAt(b []byte, at int64) (int, error) {
	if fits := max(0, min(int64(len(b)), f.room-at)); fits < int64(len(b)) {
		n, _ := f.File.WriteAt(b[:fits], at)
		return n, unix.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

func TestCheckFreeCreatesNothing(t *testing.T) {
	parent := t.TempDir()
	must(t, CheckFree(filepath.Join(parent, "a", "b"), false))
	wantFiles(t, parent)
	for dir, want := range map[string]string{
		"/proc/x": `output.dir "/proc/x": cannot be created: mkdir /proc/x: ` +
			`no such file or directory`,
		filepath.Join(parent, "file", "below"): ": not a directory",
	} {
		must(t, os.WriteFile(filepath.Join(parent, "file"), nil, 0o644))
		if err := CheckFree(dir, false); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}
	if n, err := AvailableBytes(filepath.Join(parent, "a", "b")); err != nil || n == 0 {
		t.Errorf("%d bytes in a directory that does not exist: %v", n, err)
	}
}
