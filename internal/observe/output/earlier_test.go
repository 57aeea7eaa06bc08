package output

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jacobi/configs"
)

// The files of an earlier run: those of its report, and others of the user beside them.
var (
	ofEarlier = []string{"field.npy", "film.png", "field.vti", "trace.json", "probes.csv", "field.pvd",
		"field-000000010.npy", "field-000000020.npy"}
	ofTheUser = []string{"changed.png", "field-000000030.npy", "field-10.npy", "notes.csv"}
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"field.npy", "film.png", "field.vti", "trace.json", "changed.png", "gone.gif"} {
		text := name
		if name == "changed.png" {
			text = "as it was.." // of the same size
		}
		sum := sha256.Sum256([]byte(text))
		e.Files = append(e.Files, FileReport{Name: name, Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	}
	above := FileReport{Name: "../" + filepath.Base(dir) + "/notes.csv", Bytes: 9}
	e.Files = append(e.Files, above, FileReport{Name: "report.json"})
	b, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "report.json"), b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run that replaces the report of another one says whose files it replaces. With its own files in place, and not
// before, it removes those that the report lists and that it does not write itself; no others.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	plantEarlier(t, dir)
	before := append(slices.Concat(ofEarlier, ofTheUser), "report.json")
	o := configs.Output{Dir: dir, Field: "field.npy", Report: "report.json"}
	h := hold(t, o)
	note := h.Replace()
	want := dir + " has the files of run r1 (first (gtc2019)), which ended on 2026-01-02 03:04:05: this run replaces " +
		"them, and removes film.png, field.vti, trace.json, probes.csv, field.pvd, field-*.npy (2 fields)"
	if note != want {
		t.Errorf("%s\nwant %s", note, want)
	}
	release(t, h) // without a commit
	wantSorted(t, dir, before...)

	h = hold(t, o)
	h.Replace()
	staged(t, h, "field.npy", "report.json")
	if err := h.Commit([]string{"field.npy", "report.json"}); err != nil {
		t.Fatal(err)
	}
	release(t, h)
	wantSorted(t, dir, append(slices.Clone(ofTheUser), "field.npy", "report.json")...)
	wantText(t, dir, "field.npy", "run field.npy")
}

// What a run writes itself stays, under any name of its report. Files of no run are nobody's.
func TestReplaceKeeps(t *testing.T) {
	every := configs.Interval{Sweeps: 5}
	for _, c := range []struct {
		o    configs.Output
		want []string
	}{
		{configs.Output{Field: "field.npy", Animation: "film.png", Trace: "trace.json", Probes: "(0,0)", Every: every,
			Report: "report.json"}, []string{"field.vti", "field.pvd"}},
		{configs.Output{Field: "field.vti", Animation: "film.png", Trace: "trace.json", Probes: "(0,0)", Every: every,
			Report: "report.json"}, []string{"field.npy", "field-*.npy (2 fields)"}},
		{configs.Output{Field: "field.npy", Report: "other.json"}, nil},
		{configs.Output{Field: "field.npy", Animation: "film.png", Trace: "trace.json", Probes: "(0,0)", Every: every},
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
		if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
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
	if err := h.Commit([]string{"report.json"}); err != nil {
		t.Fatal(err)
	}
	release(t, h)
	wantSorted(t, dir, append(slices.Concat(ofEarlier, ofTheUser), "report.json")...)
}
