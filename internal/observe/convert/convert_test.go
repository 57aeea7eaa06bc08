package convert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// field returns a file of 5 x 3 values 0.1, 1.1, 2.1 and so on.
func field(name string, d solver.DType) []byte {
	m := solver.Mesh{NX: 5, NY: 3, DType: d}
	format := output.FormatOf(name, m, 0.25, 0.5)
	b := bytes.Clone(format.Head)
	for i := range 15 {
		if v := float64(i) + 0.1; d == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return append(b, format.Tail...)
}

func TestField(t *testing.T) {
	for _, c := range []struct {
		from, to string
		of       solver.DType
		want     solver.DType
		o        Options
	}{
		{"a.npy", "b.vti", solver.Float64, solver.Float64, Options{HX: 0.25, HY: 0.5}},
		{"a.npy", "b.npy", solver.Float64, solver.Float32, Options{Float32: true}},
		{"a.vti", "b.VTI", solver.Float64, solver.Float32, Options{Float32: true}},
		{"a.vti", "b.npy", solver.Float32, solver.Float32, Options{Float32: true}},
	} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, c.from), filepath.Join(dir, c.to)
		if err := os.WriteFile(from, field(c.from, c.of), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Field(t.Context(), from, to, c.o); err != nil {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
			continue
		}
		got, err := os.ReadFile(to)
		if err != nil || !bytes.Equal(got, field(c.to, c.want)) {
			t.Errorf("%s to %s: %v, %q", c.from, c.to, err, got)
		}
		if entries, err := os.ReadDir(dir); len(entries) != 2 || err != nil {
			t.Errorf("%s to %s: %d files, %v; want 2", c.from, c.to, len(entries), err)
		}
	}
}

// What cannot be converted is refused, and leaves nothing behind.
// A .npy file takes its spacings from the report of its run beside it, and from no other.
func TestSpacingsOfTheReport(t *testing.T) {
	const report = `{"mesh": {"nx": 5, "ny": %d}, "setup": {"spacing_x": 0.25, "spacing_y": 0.5},
		"files": [{"name": "field.npy"}], "series": {"files": "field-*.npy"}}`
	known := field("b.vti", solver.Float64)
	for _, c := range []struct {
		from   string
		ny     int
		o      Options
		spaced bool
	}{
		{"field.npy", 3, Options{}, true},
		{"field-000000010.npy", 3, Options{}, true},
		{"other.npy", 3, Options{}, false},
		{"field.npy", 4, Options{}, false},
		{"other.npy", 3, Options{HX: 0.25, HY: 0.5}, true},
		{".", 3, Options{}, true}, // the directory of the run
	} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, c.from), filepath.Join(dir, "b.vti")
		name := c.from
		if name == "." {
			name = "field.npy"
		}
		err := errors.Join(os.WriteFile(filepath.Join(dir, name), field(name, solver.Float64), 0o600),
			os.WriteFile(filepath.Join(dir, "report.json"), fmt.Appendf(nil, report, c.ny), 0o600))
		if err == nil {
			err = Field(t.Context(), from, to, c.o)
		}
		got, _ := os.ReadFile(to)
		if err != nil || bytes.Equal(got, known) != c.spaced {
			t.Errorf("%s, %d rows in the report, %+v: %v; the spacings are known: %t, want %t", c.from, c.ny, c.o, err,
				!c.spaced, c.spaced)
		}
	}
}

func TestRefused(t *testing.T) {
	npy, vti := string(field("a.npy", solver.Float64)), string(field("a.vti", solver.Float64))
	for _, c := range []struct{ from, data, to, want string }{
		{"a.txt", "", "b.npy", "a.txt: the name of a field has to end in .npy, .vti or .zarr"},
		{"a.npy", "junk", "b.npy", "a.npy: not a .npy file"},
		{"a.zarr", "", "b.npy", "open a.zarr/u/c/0/0: not a directory"},
		{"a.npy", npy, "b.csv", "b.csv: the name has to end in .npy, .vti or .zarr"},
		{"a.npy", npy, "a.npy", "a.npy: a file of this name exists; remove it first"},
		{"a.npy", npy[:200], "b.npy", "a.npy: truncated: 200 bytes; it must have 5 x 3 values of float64 from byte " +
			"128 on"},
		{"a.vti", vti[:1100], "b.npy", "a.vti: truncated: 1100 bytes; it must have 5 x 3 values of float64 from byte " +
			"1024 on"},
		{"a.vti", "<VTKFile>", "b.npy", "a.vti: no raw appended data; it must be a .vti file as the launcher writes " +
			"it"},
		{"a.vti", strings.Replace(vti, "UInt64", "UInt32", 1), "b.npy", "a.vti: it must be a flat ImageData of one " +
			"piece " +
			"with an array, little-endian, with a UInt64 header, without compression"},
		{"a.vti", strings.Replace(vti, "Float64", "Int64\x1b", 1), "b.npy", "a.vti: its XML: XML syntax error on " +
			"line 6: illegal character code U+001B"},
		{"a.vti", strings.Replace(vti, "<Piece", "<Peace", 1), "b.npy", "a.vti: its XML: XML syntax error on line 8: " +
			"element <Peace> closed by </Piece>"},
		{"a.vti", strings.Replace(vti, `"0.25 0.5 1"`, `"Inf Inf 1"`, 1), "b.npy",
			"a.vti: spacings +Inf and +Inf: must be above 0 and give the mesh finite sides"},
		{"a.vti", strings.Replace(vti, `"0.25 0.5 1"`, `"0.25 NaN 1"`, 1), "b.zarr",
			"a.vti: spacings 0.25 and NaN: must be above 0 and give the mesh finite sides"},
		{"a.vti", strings.Replace(vti, `"0.25 0.5 1"`, `"1e308 1 1"`, 1), "b.zarr",
			"a.vti: spacings 1e+308 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", strings.Replace(vti, `"0.25 0.5 1"`, `"-1 1 1"`, 1), "b.npy",
			"a.vti: spacings -1 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", strings.Replace(vti, `"0.25 0.5 1"`, `"0 1 1"`, 1), "b.npy",
			"a.vti: spacings 0 and 1: must be above 0"},
		{"a.vti", strings.ReplaceAll(vti, "0 4 0 2 0 0", "0 4 0 -2 0 0"), "b.npy",
			"a.vti: a mesh of 5 x -1; sides must have 2 to 2147483647 points"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.from), []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		err := Field(t.Context(), c.from, c.to, Options{})
		if err == nil || err.Error() != "convert: "+c.want {
			t.Errorf("%s to %s: %v\nwant convert: %s", c.from, c.to, err, c.want)
		}
		if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
			t.Errorf("%s to %s: %d files, %v; want 1", c.from, c.to, len(entries), err)
		}
	}
	large := filepath.Join(t.TempDir(), "a.npy")
	data := field(large, solver.Float64)
	binary.LittleEndian.PutUint64(data[128:], math.Float64bits(1e300))
	if err := os.WriteFile(large, data, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Field(t.Context(), large, large+".npy", Options{Float32: true})
	if err == nil || err.Error() != "convert: "+large+": row 0: 1e+300 is beyond float32" {
		t.Errorf("%v", err)
	}
}

// A directory without the report of a run is refused.
func TestNoRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("out", 0o700); err != nil {
		t.Fatal(err)
	}
	for report, want := range map[string]string{
		"": "unexpected end of JSON input", `{"files": [{"name": "a.csv"}]}`: "",
	} {
		want = strings.TrimSuffix("convert: out: a directory whose report.json names no field: "+want, ": ")
		if err := os.WriteFile("out/report.json", []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Field(t.Context(), "out", "b.npy", Options{}); err == nil || err.Error() != want {
			t.Errorf("report %q: %v, want %s", report, err, want)
		}
	}
}

// A field with long rows is converted in parts of rows, and refused where the format wants more in memory.
func TestLongRows(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "a.npy")
	m := solver.Mesh{NX: maxZarrSide + 1, NY: 2, DType: solver.Float64} // 256 MiB, sparse
	head := output.FormatOf(from, m, 1, 1).Head
	if err := os.WriteFile(from, head, 0o600); err != nil {
		t.Fatal(err)
	}
	size := int64(len(head)) + 2*int64(m.RowBytes())
	if err := os.Truncate(from, size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	to := filepath.Join(dir, "b.npy")
	if err := Field(t.Context(), from, to, Options{Float32: true}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 3*blockBytes {
		t.Errorf("converting rows of %d bytes took %d bytes", m.RowBytes(), took)
	}
	if info, err := os.Stat(to); err != nil || info.Size() != int64(len(head))+int64(m.RowBytes()) {
		t.Errorf("%v, %v", info, err)
	}
	for _, format := range []int{2, 3} {
		to := filepath.Join(dir, "b.zarr")
		err := Field(t.Context(), from, to, Options{ZarrFormat: format})
		want := "convert: " + to + ": a mesh of 16777217 x 2; convert writes Zarr groups with sides of at most " +
			"16777216 points"
		if err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// What a killed conversion has left is removed by the next one to the same name; what another one uses stays, and no
// run takes it for a leftover of its own.
func TestLeftoversOfConversions(t *testing.T) {
	for _, c := range []struct {
		name   string
		format int
	}{{"b.npy", 3}, {"b.zarr", 2}, {"b.zarr", 3}} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "a.npy"), filepath.Join(dir, c.name)
		if err := os.WriteFile(from, field(from, solver.Float64), 0o600); err != nil {
			t.Fatal(err)
		}
		killed, err := newScratch(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(killed.dir, "half"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := killed.lock.Close(); err != nil { // as at the end of its process
			t.Fatal(err)
		}
		other, err := newScratch(filepath.Join(dir, "b.vti"))
		if err != nil {
			t.Fatal(err)
		}
		held, _, err := output.Hold(dir, "run")
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		if err := Field(t.Context(), from, to, Options{ZarrFormat: c.format}); err != nil {
			t.Fatal(err)
		}
		var names []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if want := []string{filepath.Base(other.dir), "a.npy", c.name}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%s, format %d: %q, %v; want %q", c.name, c.format, names, err, want)
		}
	}
}
