package output

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
)

// listed returns the names of the files in dir, but for hidden ones.
func listed(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
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
	o := configs.Output{Dir: dir, Field: `a&b.vti`, Every: configs.Interval{Sweeps: 5}}
	h := hold(t, o)
	defer release(t, h)
	for _, name := range []string{"a&b-000000005.vti", "a&b-000000010.vti", "a&b-1000000000.vti", "a&b-10.vti",
		"a&b-000000010.npy", "a&b.pvd"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.TrimSeries(5); err != nil {
		t.Fatal(err)
	}
	if got, want := listed(t, dir), []string{"a&b-000000005.vti", "a&b-000000010.npy",
		"a&b-10.vti"}; !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
	for range 2 { // the reply to the first request may have been lost
		for _, name := range []string{o.SeriesFile(1234567890), o.SeriesFile(10)} {
			staged(t, h, name)
			for range 2 {
				if err := h.Put(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := h.TrimSeries(5); err != nil {
			t.Fatal(err)
		}
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
