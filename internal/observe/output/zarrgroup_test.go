package output

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// A group with anything that no run wrote is neither replaced nor removed: it is refused before the run.
func TestGroupWithOtherFiles(t *testing.T) {
	o := configs.Output{Dir: t.TempDir(), Field: "u.zarr", Every: configs.Interval{Sweeps: 5}}
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
