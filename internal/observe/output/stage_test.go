package output

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/configs"
)

// The environment of a run in another process, which is killed before its given change of a name or removal.
const (
	envDir  = "OUTPUT_TEST_DIR"
	envKill = "OUTPUT_TEST_KILL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		at, err := strconv.Atoi(os.Getenv(envKill))
		if err == nil {
			err = runOnce(replacing(dir), "second", failing(at, func() error {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // the signal comes
			}))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// failing returns a disk that calls fault instead of its n-th change, from 1 on.
func failing(n int, fault func() error) disk {
	next := func() error {
		if n--; n == 0 {
			return fault()
		}
		return nil
	}
	return disk{
		rename: func(from, to string) error {
			if err := next(); err != nil {
				return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
			}
			return os.Rename(from, to)
		},
		remove: func(path string) error {
			if err := next(); err != nil {
				return &os.PathError{Op: "remove", Path: path, Err: err}
			}
			return os.RemoveAll(path)
		},
	}
}

// replacing are the outputs of a run that replaces those of another one: it writes no picture, and a group of the same
// name.
func replacing(dir string) configs.Output {
	return configs.Output{Dir: dir, Field: "u.zarr", History: "history.csv", Report: "report.json"}
}

// runOnce has a run write o. Every file has the run in it.
func runOnce(o configs.Output, runID string, d disk) error {
	h, _, err := Hold(o, runID)
	if err != nil {
		return err
	}
	h.Replace()
	h.disk = d
	report := Report{RunID: runID, Dir: o.Dir}
	names := []string{"history.csv", "u.zarr"}
	if o.Picture != "" {
		names = append(names, o.Picture)
	}
	for _, name := range names {
		parts := map[string][]byte{name: []byte(runID)}
		if isZarr(name) {
			s := Shard{NX: 3, NY: 3, DType: "float32", HX: 1, HY: 1, Rows: 3}
			parts = map[string][]byte{name + "/" + ShardFile: []byte(runID)}
			for part, data := range s.Group() {
				parts[name+"/"+part] = data
			}
		}
		for part, data := range parts {
			f, err := h.Create(part, 0)
			if err == nil {
				err = write(f, data)
			}
			if err != nil {
				return err
			}
		}
		report.Files = append(report.Files, fileOf(name, []byte(runID)))
	}
	f, err := h.Create("report.json", 0)
	if err == nil {
		err = WriteReport(f, report)
	}
	if err == nil {
		err = h.Commit(append(names, "report.json"))
	}
	return errors.Join(err, h.Close())
}

// runsIn returns the run of each file in dir; of a picture, that it is there.
func runsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"history.csv", "u.zarr/" + ShardFile, "field.png", "report.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if name == "report.json" {
			var r Report
			must(t, json.Unmarshal(data, &r))
			data = []byte(r.RunID)
		}
		found[name] = string(data)
	}
	return found
}

// oneRun checks that all files of one of the two runs are in dir and no others, and returns that run.
func oneRun(t *testing.T, dir, when string) string {
	t.Helper()
	found := runsIn(t, dir)
	run := found["report.json"]
	want := map[string]string{"history.csv": run, "u.zarr/" + ShardFile: run, "report.json": run}
	if run == "first" {
		want["field.png"] = run
	}
	if fmt.Sprint(found) != fmt.Sprint(want) || run == "" {
		t.Errorf("%s: %v, want %v", when, found, want)
	}
	if err := unfit(filepath.Join(dir, "u.zarr")); err != nil {
		t.Errorf("%s: u.zarr %v", when, err)
	}
	if names := files(t, dir); len(names) != len(want) {
		t.Errorf("%s: %q are left", when, names)
	}
	return run
}

// first has a first run write its files in a new directory.
func first(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	o := replacing(dir)
	o.Picture = "field.png"
	must(t, runOnce(o, "first", realDisk))
	return dir
}

// neverMixed checks that no report in dir is beside a file of another run.
func neverMixed(t *testing.T, dir, when string) {
	t.Helper()
	found := runsIn(t, dir)
	report, ok := found["report.json"]
	for name, run := range found {
		if ok && name != "field.png" && run != report {
			t.Errorf("%s: the report of run %s is beside %s of run %s", when, report, name, run)
		}
	}
}

// A run that is killed at any step of putting its files in place leaves no report beside files of another run. The next
// run finds the files of the run before, or completes those of the killed one.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	completed := 0
	for at := 1; ; at++ {
		dir, when := first(t), fmt.Sprintf("killed at step %d", at)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envDir+"="+dir, envKill+"="+strconv.Itoa(at))
		out, err := cmd.CombinedOutput()
		if err == nil {
			if oneRun(t, dir, "not killed") != "second" || completed < 8 {
				t.Errorf("%d steps", at-1)
			}
			return
		}
		if w := cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signal() != syscall.SIGKILL {
			t.Fatalf("%s: %v: %s", when, err, out)
		}
		neverMixed(t, dir, when)
		h, notes, err := Hold(replacing(dir), "next")
		if err != nil {
			t.Fatal(when, err)
		}
		release(t, h)
		const done = "a run did not put all of its outputs in place; that is done now: "
		want := done + dir + " has history.csv, u.zarr, report.json of run second"
		switch run := oneRun(t, dir, when); {
		case run == "second":
			if completed++; len(notes) > 0 && !slices.Equal(notes, []string{want}) {
				t.Errorf("%s: %q, want %s", when, notes, want)
			}
		case completed > 0 || len(notes) != 1 || !strings.HasPrefix(notes[0], dir+": removed 9 unfinished files ("):
			t.Errorf("%s: run %s, %q", when, run, notes)
		}
	}
}

// A step that fails with an input/output error is named, with what is in place and where the rest is. Nothing that is
// complete is removed, and the next run completes it.
func TestErrorAtEachStep(t *testing.T) {
	t.Parallel()
	var shown string
	for at := 1; ; at++ {
		dir, when := first(t), fmt.Sprintf("error at step %d", at)
		err := runOnce(replacing(dir), "second", failing(at, func() error { return unix.EIO }))
		if err == nil {
			break
		}
		neverMixed(t, dir, when)
		text := err.Error()
		for _, name := range files(t, dir) {
			if strings.HasPrefix(name, stagePrefix) {
				text = strings.ReplaceAll(text, filepath.Join(dir, name), "STAGE")
			}
		}
		if text = strings.ReplaceAll(text, dir, "DIR"); at == 5 {
			shown = text
		}
		if !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %v", when, err)
		}
		h, _, err := Hold(replacing(dir), "next")
		if err != nil {
			t.Fatal(when, err)
		}
		release(t, h)
		if run := oneRun(t, dir, when); run == "first" && at > 1 {
			t.Errorf("%s: the files of the second run are lost", when)
		}
	}
	want := "put the outputs in place: rename STAGE/u.zarr DIR/u.zarr: input/output error; DIR has history.csv of " +
		"run second; the rest (u.zarr, report.json) is complete and lies in STAGE. The next run in DIR completes that"
	if shown != want {
		t.Errorf("%s\nwant\n%s", shown, want)
	}
}

// A list is obeyed only in a directory that is this user's alone. It names outputs, and nothing else.
func TestPlantedLists(t *testing.T) {
	plain := list{Run: "planted", Files: []string{"field.npy"}, Stale: stale{Files: []string{"mine.csv"}}}
	outside := list{Run: "planted", Files: []string{"../x.csv"}}
	other := list{Run: "planted", Stale: stale{Files: []string{"notes"}}}
	for name, c := range map[string]struct {
		list  list
		plant func(stage string) error
		want  string // of the error; "" if the list is not looked at
	}{
		"readable":     {plain, func(stage string) error { return os.Chmod(stage, 0o755) }, ""},
		"another user": {plain, func(stage string) error { return os.Chown(stage, 12345, -1) }, ""},
		"a link": {plain, func(stage string) error {
			elsewhere := stage + "-elsewhere"
			return errors.Join(os.Rename(stage, filepath.Join(filepath.Dir(stage), "x")),
				os.Symlink("x", elsewhere))
		}, ""},
		"a file": {plain, func(stage string) error {
			return errors.Join(os.RemoveAll(stage), os.WriteFile(stage, nil, 0o600))
		}, ""},
		"a path":    {outside, func(string) error { return nil }, `"../x.csv" is no file that a run writes`},
		"no output": {other, func(string) error { return nil }, `"notes" is no file that a run writes`},
		"a pipe": {plain, func(stage string) error {
			path := filepath.Join(stage, listFile)
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
		}, "a named pipe, not a regular file"},
	} {
		o := outputs(t.TempDir())
		stage := filepath.Join(o.Dir, stagePrefix+"planted")
		b, err := json.Marshal(c.list)
		must(t, err)
		must(t, os.Mkdir(stage, 0o700))
		for path, text := range map[string]string{filepath.Join(stage, listFile): string(b),
			filepath.Join(stage, "field.npy"): "planted", filepath.Join(o.Dir, "field.npy"): "mine",
			filepath.Join(o.Dir, "mine.csv"): "mine", filepath.Join(o.Dir, "notes"): "mine"} {
			must(t, os.WriteFile(path, []byte(text), 0o600))
		}
		if err := c.plant(stage); err != nil {
			if name == "another user" && errors.Is(err, os.ErrPermission) {
				t.Logf("NOT TESTED: %s; this needs root: %v", name, err)
				continue
			}
			t.Fatal(err)
		}
		h, notes, err := Hold(o, "run")
		if c.want == "" && (err != nil || notes != nil) || c.want != "" && (err == nil ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v; want %q", name, notes, err, c.want)
		}
		if h != nil {
			release(t, h)
		}
		for _, mine := range []string{"field.npy", "mine.csv", "notes"} {
			wantText(t, o.Dir, mine, "mine")
		}
	}
}

// A Zarr group of a series that is replaced when its run is killed gets its name back, unless the new one has it.
func TestReplacedGroupComesBack(t *testing.T) {
	for _, placed := range []bool{false, true} {
		dir := first(t)
		h := hold(t, replacing(dir))
		must(t, os.Mkdir(h.path(replacedDir), 0o700))
		must(t, os.Rename(h.final("u.zarr"), h.path(replacedDir+"/u.zarr")))
		if placed {
			must(t, os.CopyFS(h.final("u.zarr"), os.DirFS(h.path(replacedDir+"/u.zarr"))))
			must(t, os.WriteFile(h.final("u.zarr/"+ShardFile), []byte("second"), 0o600))
		}
		must(t, h.lock.Release()) // as at the end of its process
		next, _, err := Hold(replacing(dir), "next")
		must(t, err)
		release(t, next)
		want := "first"
		if placed {
			want = "second"
		}
		wantText(t, dir, "u.zarr/"+ShardFile, want)
		if got := files(t, dir); !slices.Equal(got, []string{"field.png", "history.csv", "report.json", "u.zarr"}) {
			t.Errorf("%q are left", got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The files of an earlier run: those of its report, and others of the user beside them.
var (
	ofEarlier = []string{"field.npy", "first.png", "field.vti", "trace.json", "probes.csv", "field.pvd",
		"field-000000010.npy", "field-000000020.npy"}
	ofTheUser = []string{"changed.png", "later.npy", "field-000000030.npy", "field-10.npy", "notes.csv"}
)

// wantSorted is wantFiles for names in any order.
func wantSorted(t *testing.T, dir string, names ...string) {
	t.Helper()
	slices.Sort(names)
	wantFiles(t, dir, names...)
}

// plantEarlier writes the files of an earlier run, and its report.
func plantEarlier(t *testing.T, dir string) {
	t.Helper()
	e := Report{Name: "first", Problem: "gtc2019", RunID: "r1", Ended: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local),
		Series: &SeriesReport{Files: "field-*.npy", Sweeps: 20, Index: "field.pvd"}, Probes: &ProbesReport{Samples: 2}}
	for _, name := range slices.Concat(ofEarlier, ofTheUser) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666))
	}
	for _, name := range []string{"field.npy", "first.png", "field.vti", "trace.json", "changed.png", "gone.jpg",
		"later.npy"} {
		text := name
		if name == "changed.png" {
			text = "as it was.." // of the same size
		}
		sum := sha256.Sum256([]byte(text))
		f := FileReport{Name: name, Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
		if strings.HasPrefix(name, "field.") || name == "later.npy" { // a large file
			f.SHA256 = ""
		}
		e.Files = append(e.Files, f)
	}
	above := FileReport{Name: "../" + filepath.Base(dir) + "/notes.csv", Bytes: 9}
	e.Files = append(e.Files, above, FileReport{Name: "report.json"})
	b, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "report.json"), b, 0o666)
	}
	must(t, err)
	later := time.Now().Add(time.Hour) // than the report
	must(t, os.Chtimes(filepath.Join(dir, "later.npy"), later, later))
}

// What a run writes itself stays, under any name of its report. Files of no run are nobody's.
func TestReplaceKeeps(t *testing.T) {
	every := configs.Interval{Iterations: 5}
	for _, c := range []struct {
		o    configs.Output
		want []string
	}{
		{configs.Output{Field: "field.npy", Picture: "first.png", Trace: "trace.json", Probes: "(0,0)", Every: every,
			Report: "report.json"}, []string{"field.vti", "field.pvd"}},
		{configs.Output{Field: "field.vti", Picture: "first.png", Trace: "trace.json", Probes: "(0,0)", Every: every,
			Report: "report.json"}, []string{"field.npy", "field-*.npy (2 fields)"}},
		{configs.Output{Field: "field.npy", Report: "other.json"}, nil},
		{configs.Output{Field: "field.npy", Picture: "first.png", Trace: "trace.json", Probes: "(0,0)", Every: every},
			[]string{"field.vti", "report.json", "field.pvd"}},
	} {
		dir := t.TempDir()
		plantEarlier(t, dir)
		c.o.Dir = dir
		h := hold(t, c.o)
		h.Replace()
		var names []string
		if h.stale.String() != "" {
			names = append(names, h.stale.Files...)
		}
		if h.stale.count > 0 {
			names = append(names, "field-*.npy (2 fields)")
		}
		if !slices.Equal(names, c.want) {
			t.Errorf("%+v: removes %q, want %q", c.o, names, c.want)
		}
		release(t, h)
	}
	for _, text := range []string{"", "{}", `{"run_id": 3}`, "["} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "report.json"), []byte(text), 0o666))
		h := hold(t, configs.Output{Dir: dir, Report: "report.json"})
		if note := h.Replace(); note != "" {
			t.Errorf("%q: %s", text, note)
		}
		release(t, h)
	}
}

// The report of another user has nothing removed: anybody may have planted it in a directory that others share.
func TestReplaceOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	plantEarlier(t, dir)
	if err := os.Chown(filepath.Join(dir, "report.json"), 12345, -1); err != nil {
		t.Skipf("NOT RUN, a file of another user needs root: %v", err)
	}
	h := hold(t, configs.Output{Dir: dir, Field: "field.npy", Report: "report.json"})
	note := h.Replace()
	want := dir + " has the files of run r1 (first (gtc2019)), which ended on 2026-01-02 03:04:05: this run replaces " +
		"them"
	if note != want {
		t.Errorf("%s\nwant %s", note, want)
	}
	staged(t, h, "report.json")
	must(t, h.Commit([]string{"report.json"}))
	release(t, h)
	wantSorted(t, dir, append(slices.Concat(ofEarlier, ofTheUser), "report.json")...)
}
