package problem

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// npyBytes returns a .npy file of the given format version with count values 0, 1, 2, ... of type size.
func npyBytes(version byte, descr, order, shape string, count int, size solver.DType) []byte {
	head := "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n"
	b := []byte("\x93NUMPY" + string([]byte{version, 0}))
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(head)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	}
	b = append(b, head...)
	for i := range count {
		if size == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)))
		}
	}
	return b
}

func TestInitialFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.NPY")
	for _, version := range []byte{1, 2, 3} {
		for dtype, descr := range map[string]string{"float32": "<f4", "float64": "<f8"} {
			size, _ := solver.ParseDType(dtype)
			if err := os.WriteFile(path, npyBytes(version, descr, "False", "(5, 4)", 20, size), 0o600); err != nil {
				t.Fatal(err)
			}
			p := open(t, config(4, 5, dtype, configs.Problem{Initial: path, Left: "-1", Right: "-2"}))
			equal(t, field(t, p), [][]float64{{-1, 1, 1, -2}, {-1, 5, 6, -2}, {-1, 9, 10, -2}, {-1, 13, 14, -2},
				{-1, 0, 0, -2}})
			if m, _, err := p.MaxGuess(t.Context(), 0, 5); m != 14 || err != nil {
				t.Errorf("MaxGuess %v, %v", m, err)
			}
			if m, _, err := p.MaxGuess(t.Context(), 1, 3); m != 10 || err != nil {
				t.Errorf("MaxGuess %v, %v", m, err)
			}
			if err := p.Check(context.Background()); err != nil {
				t.Error(err)
			}
			p = open(t, config(4, 5, dtype, configs.Problem{Preset: "gtc2019", Initial: path, Left: "-1", Right: "-2"}))
			equal(t, field(t, p), [][]float64{{-1, 13, 14, -2}, {-1, 5, 6, -2}, {-1, 9, 10, -2}, {-1, 13, 14, -2},
				{-1, 5, 6, -2}})
		}
	}
}

func TestBadInitialFile(t *testing.T) {
	good := npyBytes(1, "<f4", "False", "(5, 4)", 20, solver.Float32)
	infinite := npyBytes(1, "<f4", "False", "(5, 4)", 20, solver.Float32)
	binary.LittleEndian.PutUint32(infinite[len(infinite)-4*(20-9):], math.Float32bits(float32(math.Inf(1))))
	const types = "; it must be float32, float64, an integer of at most 64 bits or bool"
	huge := npyBytes(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
	binary.LittleEndian.PutUint64(huge[len(huge)-8*(20-9):], math.Float64bits(1e300))
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a .npy file"},
		{"other", []byte("iteration,l2_norm\n0,1\n"), "not a .npy file"},
		{"version", append([]byte("\x93NUMPY\x04\x00"), good[8:]...),
			"format version 4.0; 1.0, 2.0 and 3.0 can be read"},
		{"long", []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"),
			"a header of 4294967295 bytes; at most 65536 are allowed"},
		{"header", good[:40], "truncated in its header"},
		{"complex", npyBytes(1, "<c8", "False", "(5, 4)", 20, solver.Float64), "type <c8" + types},
		{"half", npyBytes(1, "<f2", "False", "(5, 4)", 20, solver.Float32), "type <f2" + types},
		{"huge", huge, "at row 2, column 1 (x = 0.3333333333333333, y = 0.5): 1e+300 is too large for float32"},
		{"transposed", npyBytes(1, "<f4", "False", "(4, 5)", 20, solver.Float32),
			"shape (4, 5); it must be (5, 4) (grid.ny, grid.nx)"},
		{"flat", npyBytes(1, "<f4", "False", "(20,)", 20, solver.Float32),
			"shape (20,); it must be that of rows and columns"},
		{"stack", npyBytes(1, "<f4", "False", "(2, 5, 4)", 40, solver.Float32),
			"shape (2, 5, 4); it must be that of rows and columns"},
		{"truncated", good[:len(good)-1], "truncated: 149 bytes of 150"},
		{"trailing", append(good[:len(good):len(good)], 1, 2, 3), "3 bytes after the end of the array"},
		{"dictionary", npyBytes(1, "<f4', 'more': '", "False", "(5, 4)", 20, solver.Float32),
			`header "{'descr': '<f4', 'more': '', 'fortran_order': False, 'shape': (5, 4), }\n": it must ` +
				`have descr, fortran_order and shape`},
		{"escape", npyBytes(1, "\x1b]0;x\a\x1b[2J", "False", "(5, 4)", 20, solver.Float32),
			`type \x1b]0;x\a\x1b[2J` + types},
		{"infinite", infinite, "at row 2, column 1 (x = 0.3333333333333333, y = 0.5): +Inf; values must be finite"},
	} {
		path := filepath.Join(t.TempDir(), c.name+".npy")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := New(t.Context(), config(4, 5, "float32", configs.Problem{Initial: path}))
		colon := ": "
		if err == nil {
			defer p.Close()
			err, colon = p.Check(context.Background()), " "
		}
		if want := `problem.initial "` + path + `"` + colon + c.want; err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, want)
		}
	}
	dir := filepath.Join(t.TempDir(), "dir.npy")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want := `problem.initial "` + dir + `": a directory, not a regular file`
	_, err := New(t.Context(), config(4, 5, "float32", configs.Problem{Initial: dir}))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	pipe := filepath.Join(t.TempDir(), "pipe.npy")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	want = `problem.initial "` + pipe + `": a named pipe, not a regular file`
	_, err = New(t.Context(), config(4, 5, "float32", configs.Problem{Initial: pipe}))
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The values of sides can come from arrays of one dimension. The corners are those of left and right.
func TestSidesFromFiles(t *testing.T) {
	tall := writeFile(t, "left.npy", npyBytes(1, "<f8", "False", "(5,)", 5, solver.Float64))
	wide := writeFile(t, "TOP.NPY", npyBytes(1, "<f4", "False", "(4,)", 4, solver.Float32))
	for _, dtype := range []string{"float32", "float64"} {
		p := open(t, config(4, 5, dtype, configs.Problem{Left: tall, Right: "iy", Top: wide, Bottom: wide,
			Initial: "9"}))
		equal(t, field(t, p), [][]float64{{0, 1, 2, 0}, {1, 9, 9, 1}, {2, 9, 9, 2}, {3, 9, 9, 3}, {4, 1, 2, 4}})
		if _, m, err := p.MaxGuess(t.Context(), 4, 5); m != 4 || err != nil {
			t.Errorf("MaxGuess %v, %v", m, err)
		}
		if err := p.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for side, want := range map[configs.Problem]string{
		{Left: wide}:         "problem.left %q: shape (4,); it must be (5,) (grid.ny)",
		{Bottom: tall}:       "problem.bottom %q: shape (5,); it must be (4,) (grid.nx)",
		{Right: "no/no.npy"}: "problem.right %q: no such file or directory",
	} {
		_, err := New(t.Context(), config(4, 5, "float64", side))
		text := side.Left + side.Right + side.Top + side.Bottom
		if err == nil || err.Error() != fmt.Sprintf(want, text) {
			t.Errorf("error %v, want %s", err, fmt.Sprintf(want, text))
		}
	}
	bad := npyBytes(1, "<f8", "False", "(4,)", 4, solver.Float64)
	binary.LittleEndian.PutUint64(bad[len(bad)-2*8:], math.Float64bits(math.Inf(-1)))
	path := writeFile(t, "bad.npy", bad)
	want := fmt.Sprintf("problem.top %q at row 0, column 2 (x = 0.6666666666666666, y = 0): -Inf; values must be "+
		"finite", path)
	if err := open(t, config(4, 5, "float64", configs.Problem{Top: path})).Check(t.Context()); err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Files of either type and byte order, in C or Fortran order, give the same field.
func TestInitialFileIsConverted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.npy")
	rows := [][]float64{{-1, 1, 1, -2}, {-1, 5.1, 6.1, -2}, {-1, 9.1, 10.1, -2}, {-1, 13.1, 14.1, -2}, {-1, 0, 0, -2}}
	const rounded = "its values are float64, and are rounded to grid.dtype float32"
	const columns = "it is in Fortran order, which is slow to read by rows; numpy.ascontiguousarray gives the other one"
	for _, c := range []struct {
		descr, fortran, dtype string
		warnings              []string
	}{
		{"<f4", "False", "float64", nil}, {">f4", "False", "float32", nil}, {">f8", "False", "float64", nil},
		{"<f8", "False", "float32", []string{rounded}}, {">f8", "False", "float32", []string{rounded}},
		{"<f4", "True", "float32", []string{columns}}, {"<f8", "True", "float64", []string{columns}},
		{">f8", "True", "float32", []string{rounded, columns}}, {">f4", "True", "float64", []string{columns}},
	} {
		item, _ := npyItemOf(c.descr)
		dtype := map[int]solver.DType{4: solver.Float32, 8: solver.Float64}[item.size]
		data := npyBytes(1, c.descr, c.fortran, "(5, 4)", 20, dtype)
		values := data[len(data)-20*item.size:]
		for iy := range 5 {
			for ix := range 4 {
				at, v := 4*iy+ix, float64(4*iy+ix)+0.1
				if c.fortran == "True" {
					at = 5*ix + iy
				}
				if item.size == 4 {
					item.order.PutUint32(values[4*at:], math.Float32bits(float32(v)))
				} else {
					item.order.PutUint64(values[8*at:], math.Float64bits(v))
				}
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := open(t, config(4, 5, c.dtype, configs.Problem{Initial: path, Left: "-1", Right: "-2"}))
		want := make([][]float64, len(rows))
		for iy, row := range rows {
			want[iy] = slices.Clone(row)
			for ix, v := range row {
				if c.descr[1:] == "f4" || c.dtype == "float32" {
					want[iy][ix] = float64(float32(v))
				}
			}
		}
		equal(t, field(t, p), want)
		if m, _, err := p.MaxGuess(t.Context(), 0, 5); m != want[3][2] || err != nil {
			t.Errorf("%v: MaxGuess %v, %v", c, m, err)
		}
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		for i, w := range c.warnings {
			c.warnings[i] = fmt.Sprintf("problem.initial %q: %s", path, w)
		}
		if got := p.Warnings(t.Context()); !slices.Equal(got, c.warnings) {
			t.Errorf("%v: warnings %q, want %q", c, got, c.warnings)
		}
	}
}

// Integers, truth values and sides of 1 are as good as other numbers, in either byte order.
func TestArraysOfIntegers(t *testing.T) {
	for descr, raw := range map[string][]byte{
		"|b1": {0, 1, 1, 0, 1, 0}, "|u1": {0, 1, 200, 255, 4, 5}, "|i1": {0, 1, 200, 255, 4, 5},
		"<i2": {0, 0, 1, 0, 0xfe, 0xff, 0, 0x80, 4, 0, 5, 1}, ">u2": {0, 0, 0, 1, 1, 0, 0xff, 0xff, 0, 4, 0, 5},
		">i4": {3: 1, 7: 2, 8: 0xff, 9: 0xff, 10: 0xff, 11: 0xfe, 23: 0},
		"<u8": {0: 7, 15: 0x80, 47: 0}, "<i8": {0: 7, 15: 0x80, 47: 0},
	} {
		want := map[string][]float64{"|b1": {0, 1, 1, 0, 1, 0}, "|u1": {0, 1, 200, 255, 4, 5},
			"|i1": {0, 1, -56, -1, 4, 5}, "<i2": {0, 1, -2, -32768, 4, 261}, ">u2": {0, 1, 256, 65535, 4, 5},
			">i4": {1, 2, -2, 0, 0, 0}, "<u8": {7, 0x1p63, 0, 0, 0, 0}, "<i8": {7, -0x1p63, 0, 0, 0, 0}}[descr]
		for _, shape := range []string{"(3, 2)", "(1, 3, 2)", "(3, 2, 1)"} {
			path := writeFile(t, "a.npy", append(npyBytes(1, descr, "False", shape, 0, 0), raw...))
			n, err := openNPY(path, solver.Mesh{NX: 2, NY: 3, DType: solver.Float64}, false, bothKeys)
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for iy := range 3 {
				row, values := make([]byte, 16), make([]float64, 2)
				if err := n.read(row, iy, 0); err != nil {
					t.Fatal(err)
				}
				solver.Float64.Decode(values, row)
				got = append(got, values...)
			}
			if err := n.close(); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", descr, got, err, want)
			}
		}
	}
}

// NaN in the initial field of a file is an unknown value: a free point begins with 0, which the user learns, a fixed
// one is refused, and one outside the material needs none.
func TestUnknownInitialValues(t *testing.T) {
	data := npyBytes(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
	for _, at := range []int{1, 5, 6, 10} { // of which the first lies on a fixed side
		binary.LittleEndian.PutUint64(data[len(data)-8*(20-at):], math.Float64bits(math.NaN()))
	}
	path := writeFile(t, "start.npy", data)
	for fixed, want := range map[string]string{"ix == 1 and iy == 3": "3", "": "3", "ix == 2 and iy == 2": "2"} {
		p := open(t, config(4, 5, "float64", configs.Problem{Initial: path, Fixed: fixed,
			Top: "0"}))
		w := []string{fmt.Sprintf("problem.initial %q: NaN at %s free points, which begin with 0", path, want)}
		if got := p.Warnings(t.Context()); !slices.Equal(got, w) {
			t.Errorf("%s: warnings %q, want %q", fixed, got, w)
		}
		err := p.Check(t.Context())
		if want == "2" {
			bad := fmt.Sprintf("problem.initial %q at row 2, column 2 (x = 0.6666666666666666, y = 0.5): NaN; values "+
				"must be finite", path)
			if err == nil || err.Error() != bad {
				t.Errorf("error %v, want %s", err, bad)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		equal(t, field(t, p), [][]float64{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 9, 0, 0}, {0, 13, 14, 0}, {0, 0, 0, 0}})
	}
	p := open(t, config(4, 5, "float64", configs.Problem{Initial: path, Coefficient: "iy < 2 ? 0 : 1", Top: "0"}))
	if got, want := p.Warnings(t.Context()), "NaN at 1 free points"; len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("warnings %q, want %s", got, want)
	}
}

// Reading a mapped file that has been truncated is an error, not a crash.
func TestMappedInitialFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.npy")
	if err := os.WriteFile(path, npyBytes(1, "<f8", "True", "(5000, 4)", 20000, solver.Float64), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, config(4, 5000, "float64", configs.Problem{Initial: path}))
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	want := `problem.initial "` + path + `": row 4000: the file became shorter, or could not be read`
	if err := p.Row(4000, make([]byte, 32)); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Reading a row that a truncated file no longer has is an error.
func TestInitialFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.npy")
	if err := os.WriteFile(path, npyBytes(1, "<f4", "False", "(5, 4)", 20, solver.Float32), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, config(4, 5, "float32", configs.Problem{Initial: path}))
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	want := `problem.initial "` + path + `": row 3: the file became shorter, or could not be read`
	if err := p.Row(3, make([]byte, 16)); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
