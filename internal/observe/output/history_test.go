package output

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"jacobi/solver"
)

// Norms may be several iterations apart.
func TestHistoryWithAStride(t *testing.T) {
	dir := t.TempDir()
	at := hold(t, outputs(dir))
	h, err := CreateHistory(at, "history.csv", 100, solver.Cadence{Stride: 17})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(3, 2); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(1); err != nil {
		t.Fatal(err)
	}
	_, err = h.Finish()
	if err := errors.Join(err, at.Commit([]string{"history.csv"})); err != nil {
		t.Fatal(err)
	}
	release(t, at)
	got, err := os.ReadFile(filepath.Join(dir, "history.csv"))
	if want := "iteration,l2_norm\n0,3\n17,2\n34,1\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	at := hold(t, outputs(dir))
	h, err := CreateHistory(at, "history.csv", 1000, solver.Cadence{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Add(22.626005, 0.1, 1.0/3); err != nil {
		t.Fatal(err)
	}
	if err := h.Add(100, 1e-8, 123456789012345680000, math.SmallestNonzeroFloat64, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "history.csv")); !os.IsNotExist(err) {
		t.Errorf("the history is there before its end: %v", err)
	}
	done, err := h.Finish()
	if err := errors.Join(err, at.Commit([]string{"history.csv"})); err != nil {
		t.Fatal(err)
	}
	release(t, at)
	wantFiles(t, dir, "history.csv")
	got, err := os.ReadFile(filepath.Join(dir, "history.csv"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `iteration,l2_norm
0,22.626004999999999
1,0.10000000000000001
2,0.33333333333333331
3,100
4,1e-08
5,1.2345678901234568e+20
6,4.9406564584124654e-324
7,0
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if done != fileOf("history.csv", got) {
		t.Errorf("%+v, want %+v", done, fileOf("history.csv", got))
	}
}

// A history loses nothing to a disk that is full for some time.
func TestHistoryOutlastsAFullDisk(t *testing.T) {
	dir := t.TempDir()
	at := hold(t, outputs(dir))
	defer release(t, at)
	h, err := CreateHistory(at, "history.csv", 0, solver.Cadence{})
	if err != nil {
		t.Fatal(err)
	}
	disk := &filling{h.file.f, 100}
	h.file.f = disk
	want := historyHeader
	for i := range 20000 { // several chunks
		if err := h.Add(0.5); err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("%d,0.5\n", i)
	}
	if _, err := h.Finish(); !IsFull(err) {
		t.Fatalf("%v, want a full disk", err)
	}
	disk.room = 1 << 20
	done, err := h.Finish()
	if err != nil || done != fileOf("history.csv", []byte(want)) {
		t.Errorf("%+v, %v; want %+v", done, err, fileOf("history.csv", []byte(want)))
	}
	if got, err := os.ReadFile(at.path("history.csv")); err != nil || string(got) != want {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), err)
	}
}
