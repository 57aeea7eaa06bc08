package convert

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jacobi/internal/output"
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
func TestRefused(t *testing.T) {
	npy, vti := string(field("a.npy", solver.Float64)), string(field("a.vti", solver.Float64))
	for _, c := range []struct{ from, data, to, want string }{
		{"a.txt", "", "b.npy", "a.txt: the name of a field has to end in .npy, .vti or .zarr"},
		{"a.npy", "junk", "b.npy", "a.npy: not a .npy file"},
		{"a.zarr", "", "b.npy", "open a.zarr/u/c/0/0: not a directory"},
		{"a.npy", npy, "b.csv", "b.csv: the name has to end in .npy, .vti or .zarr"},
		{"a.npy", npy, "a.npy", "a.npy: a file of this name exists; remove it first"},
		{"a.npy", npy[:200], "b.npy", "a.npy: truncated: 200 bytes, 5 x 3 values of float64 are wanted from byte " +
			"128 on"},
		{"a.vti", vti[:1100], "b.npy", "a.vti: truncated: 1100 bytes, 5 x 3 values of float64 are wanted from byte " +
			"1024 on"},
		{"a.vti", "<VTKFile>", "b.npy", "a.vti: no raw appended data; a .vti file as the launcher writes it is wanted"},
		{"a.vti", strings.Replace(vti, "UInt64", "UInt32", 1), "b.npy", "a.vti: a flat ImageData of one piece with " +
			"one array is wanted, little-endian, with a UInt64 header, without compression"},
		{"a.vti", strings.Replace(vti, "Float64", "Int64\x1b", 1), "b.npy", "a.vti: its XML: XML syntax error on " +
			"line 6: illegal character code U+001B"},
		{"a.vti", strings.Replace(vti, "<Piece", "<Peace", 1), "b.npy", "a.vti: its XML: XML syntax error on line 8: " +
			"element <Peace> closed by </Piece>"},
		{"a.vti", strings.ReplaceAll(vti, "0 4 0 2 0 0", "0 4 0 -2 0 0"), "b.npy",
			"a.vti: a mesh of 5 x -1; sides of 2 to 2147483647 points are wanted"},
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
