package output

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/configs"
)

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
			if err := os.WriteFile(filepath.Join(dir, "probes.csv"), []byte(c.old), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		h := hold(t, configs.Output{Dir: dir, Probes: "a=[1,1]", ProbesEvery: configs.Interval{Sweeps: 7}})
		p, end, err := h.GrowProbes(c.before)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGrowing(p, end)
		for _, line := range []string{"8,new\n", "9,new\n"} {
			wantText(t, dir, "probes.csv", c.want)
			if err := g.Add([]byte(line)); err != nil {
				t.Fatal(err)
			}
			c.want += line
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		release(t, h)
		wantText(t, dir, "probes.csv", c.want)
	}
}

// Lines that find no room are written with the next ones.
func TestGrowingWaitsForRoom(t *testing.T) {
	dir := t.TempDir()
	p, err := createLocal(dir, filepath.Join(dir, "probes.csv"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	full := &filling{File: p, room: 10}
	g := NewGrowing(full, 0)
	if err := g.Add([]byte("eight...")); err != nil {
		t.Fatal(err)
	}
	if err := g.Add([]byte("and more")); !IsFull(err) {
		t.Errorf("error %v, want a full disk", err)
	}
	full.room = 100
	if err := g.Add([]byte(" and more")); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	wantText(t, dir, "probes.csv", "eight...and more and more")
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
