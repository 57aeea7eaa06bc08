package output

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/solver"
)

// partialShard creates the partial file of a group with this byte in all values, and returns its name.
func partialShard(t *testing.T, dir, name string, value byte) string {
	t.Helper()
	m := solver.Mesh{NX: 8, NY: 5, DType: solver.Float32}
	format := FormatOf(name, m, 0.5, 2)
	p, err := Dir(dir).Create(name, "run", 0)
	must(t, err)
	rows := bytes.Repeat([]byte{value}, m.NY*m.RowBytes())
	must(t, finish(p, slices.Concat(format.Head, rows, format.Tail)))
	return p.File()
}

// A crash at any step of placing a group is completed by a repetition. The file of the values is never lost, and the
// name is that of a complete group, old or new.
func TestPlaceGroupAfterCrash(t *testing.T) {
	for name, crash := range map[string]func(t *testing.T, dir, file string){
		"before": func(*testing.T, string, string) {},
		"partway": func(t *testing.T, dir, file string) {
			must(t, os.Mkdir(filepath.Join(dir, groupPartial(file)), 0o777))
		},
		"built": func(t *testing.T, dir, file string) {
			must(t, buildGroup(filepath.Join(dir, file), filepath.Join(dir, groupPartial(file))))
		},
		"placed": func(t *testing.T, dir, file string) { must(t, PlaceGroup(dir, file, "u.zarr", 0)) },
		"exchanged": func(t *testing.T, dir, file string) {
			hidden, final := filepath.Join(dir, groupPartial(file)), filepath.Join(dir, "u.zarr")
			must(t, buildGroup(filepath.Join(dir, file), hidden))
			if inodeOf(final) == 0 {
				must(t, os.Rename(hidden, final))
				return
			}
			must(t, unix.Renameat2(unix.AT_FDCWD, hidden, unix.AT_FDCWD, final, unix.RENAME_EXCHANGE))
		},
	} {
		for _, before := range []bool{false, true} { // a group of an earlier run is there
			dir := t.TempDir()
			if before {
				must(t, PlaceGroup(dir, partialShard(t, dir, "u.zarr", 1), "u.zarr", 0))
			}
			file := partialShard(t, dir, "u.zarr", 2)
			inode := inodeOf(filepath.Join(dir, file))
			want, err := os.ReadFile(filepath.Join(dir, file))
			must(t, err)
			crash(t, dir, file)
			must(t, PlaceGroup(dir, file, "u.zarr", inode))
			must(t, PlaceGroup(dir, file, "u.zarr", inode))
			got, err := os.ReadFile(filepath.Join(dir, "u.zarr", ShardFile))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s, earlier group %v: %v, %d bytes; want %d", name, before, err, len(got), len(want))
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("%s, earlier group %v: %v, %v; want u.zarr alone", name, before, entries, err)
			}
			must(t, unfit(filepath.Join(dir, "u.zarr")))
		}
	}
}

// A group with anything that no run wrote is neither replaced nor removed: it is refused before the run.
func TestGroupWithOtherFiles(t *testing.T) {
	dir := t.TempDir()
	o := configs.Output{Dir: dir, Field: "u.zarr", Every: configs.Interval{Sweeps: 5}}
	for _, name := range []string{"u.zarr", o.SeriesFile(10), o.SeriesFile(15)} {
		must(t, PlaceGroup(dir, partialShard(t, dir, "u.zarr", 1), name, 0))
	}
	must(t, CheckNames(o))
	mine := filepath.Join(dir, "u.zarr", "mine")
	must(t, os.Mkdir(mine, 0o777))
	fault := filepath.Dir(mine) + " exists and has mine, which no run wrote; remove or rename the directory"
	if err := CheckNames(o); err == nil || err.Error() != `output.field "u.zarr": `+fault {
		t.Errorf("%v, want %s", err, fault)
	}
	file := partialShard(t, dir, "u.zarr", 2)
	if err := PlaceGroup(dir, file, "u.zarr", 0); err == nil || err.Error() != fault {
		t.Errorf("%v, want %s", err, fault)
	}
	must(t, os.RemoveAll(filepath.Join(dir, groupPartial(file))))
	mine = filepath.Join(dir, o.SeriesFile(15), "x", "mine")
	must(t, os.WriteFile(mine, nil, 0o666))
	h := hold(t, dir)
	defer release(t, h)
	fault = "remove the series of an earlier run: " + filepath.Dir(filepath.Dir(mine)) + " exists and has x/mine, " +
		"which no run wrote; remove or rename the directory"
	if err := h.TrimSeries(o, 5); err == nil || err.Error() != fault {
		t.Errorf("%v, want %s", err, fault)
	}
	if got := listed(t, dir); !slices.Equal(got, []string{o.SeriesFile(15), "u.zarr"}) {
		t.Errorf("%v are left", got)
	}
}

// Unfinished groups are removed with the other leftovers of killed runs.
func TestLeftoverGroup(t *testing.T) {
	dir := t.TempDir()
	file := partialShard(t, dir, "u.zarr", 1)
	must(t, buildGroup(filepath.Join(dir, file), filepath.Join(dir, groupPartial(file))))
	h, notes, err := Hold(dir, "next")
	must(t, err)
	defer h.Close()
	if len(notes) != 1 || !strings.HasPrefix(notes[0], dir+": removed 1 unfinished file (") {
		t.Errorf("notes %q", notes)
	}
	if _, err := os.Lstat(filepath.Join(dir, groupPartial(file))); !os.IsNotExist(err) {
		t.Errorf("the group is still there: %v", err)
	}
}

// A crash between the two renames that replace a group, where names cannot be exchanged, leaves the earlier group under
// a hidden name. The next run gives it its name back, or removes it if the new group has the name.
func TestGroupMovedAway(t *testing.T) {
	for _, name := range []string{"u.zarr", "u-000000010.zarr"} {
		for _, placed := range []bool{false, true} {
			dir := t.TempDir()
			final := filepath.Join(dir, name)
			must(t, PlaceGroup(dir, partialShard(t, dir, name, 1), name, 0))
			file := partialShard(t, dir, name, 2)
			hidden := filepath.Join(dir, groupPartial(file))
			must(t, buildGroup(filepath.Join(dir, file), hidden))
			must(t, os.Rename(final, movedName(hidden)))
			kept := movedName(hidden)
			want, other := inodeOf(filepath.Join(kept, ShardFile)), inodeOf(filepath.Join(hidden, ShardFile))
			if placed {
				must(t, os.Rename(hidden, final))
				want, other = other, want
			}
			h, notes, err := Hold(dir, "next")
			must(t, err)
			must(t, h.Close())
			if len(notes) != 1 || !strings.HasPrefix(notes[0], dir+": removed 1 unfinished file (") {
				t.Errorf("%s, placed %v: notes %q", name, placed, notes)
			}
			wantFiles(t, dir, name)
			if got := inodeOf(filepath.Join(final, ShardFile)); got != want {
				t.Errorf("%s, placed %v: the group's file is %d, want %d, not %d", name, placed, got, want, other)
			}
		}
	}
}

// A file that is no shard of ours is not put in place, and stays.
func TestPlaceGroupRefuses(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ".u.zarr.run.NONCE.partial"), []byte("{}"), 0o600))
	err := PlaceGroup(dir, ".u.zarr.run.NONCE.partial", "u.zarr", 0)
	if err == nil || err.Error() != "not the values of a Zarr array as the launcher writes them" {
		t.Errorf("error %v", err)
	}
	if _, err := fs.Stat(os.DirFS(dir), ".u.zarr.run.NONCE.partial"); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
