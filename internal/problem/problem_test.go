package problem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jacobi/configs"
	"jacobi/internal/elementary"
	"jacobi/solver"
)

// config returns a run of nx by ny points with the given problem.
func config(nx, ny int, dtype string, p configs.Problem) configs.Config {
	c := configs.Default()
	c.Grid = configs.Grid{NX: nx, NY: ny, DType: dtype}
	c.Problem = p
	if p.Preset == "" {
		c.Problem.Preset = "dirichlet"
	}
	return c
}

func open(t testing.TB, c configs.Config) *Problem {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// field returns the whole field of p, row by row.
func field(t testing.TB, p *Problem) [][]float64 {
	t.Helper()
	m := p.Mesh()
	rows := make([][]float64, m.NY)
	buf := make([]byte, m.RowBytes())
	for iy := range rows {
		for i := range buf {
			buf[i] = 0xa5
		}
		if err := p.Row(iy, buf); err != nil {
			t.Fatal(err)
		}
		rows[iy] = make([]float64, m.NX)
		for ix := range rows[iy] {
			rows[iy][ix] = p.get(buf[ix*m.DType.Size():])
		}
	}
	return rows
}

func TestGTC2019(t *testing.T) {
	for _, size := range []int{3, 1024, 16384} {
		for _, dtype := range []string{"float32", "float64"} {
			p := open(t, config(5, size, dtype, configs.Problem{Preset: "gtc2019"}))
			if want := (solver.Mesh{NX: 5, NY: size, DType: p.mesh.DType, Periodic: true}); p.Mesh() != want {
				t.Fatalf("mesh %+v, want %+v", p.Mesh(), want)
			}
			for iy, got := range field(t, p) {
				const pi32 = float32(math.Pi)
				side := float64(float32(math.Sin(2.0 * float64(pi32) * float64(iy) / float64(size-1))))
				if dtype == "float64" {
					side = elementary.Sin(2.0 * math.Pi * float64(iy) / float64(size-1))
				}
				if got[0] != side || got[4] != side || got[1] != 0 || got[2] != 0 || got[3] != 0 {
					t.Fatalf("%d rows, %s: row %d is %v, want sides %v and zeros", size, dtype, iy, got, side)
				}
			}
		}
	}
}

func TestCorners(t *testing.T) {
	parts := configs.Problem{Left: "10 + iy", Right: "20 + iy", Top: "30 + ix", Bottom: "40 + ix",
		Initial: "100 * iy + ix"}
	for _, dtype := range []string{"float32", "float64"} {
		got := field(t, open(t, config(4, 5, dtype, parts)))
		want := [][]float64{
			{10, 31, 32, 20},
			{11, 101, 102, 21},
			{12, 201, 202, 22},
			{13, 301, 302, 23},
			{14, 41, 42, 24},
		}
		equal(t, got, want)

		periodic := parts
		periodic.Top, periodic.Bottom = configs.Periodic, configs.Periodic
		want[0] = []float64{10, 301, 302, 20}
		want[4] = []float64{14, 101, 102, 24}
		equal(t, field(t, open(t, config(4, 5, dtype, periodic))), want)
	}
}

func equal(t *testing.T, got, want [][]float64) {
	t.Helper()
	for iy := range want {
		for ix := range want[iy] {
			if got[iy][ix] != want[iy][ix] {
				t.Errorf("row %d, column %d: %v, want %v", iy, ix, got[iy][ix], want[iy][ix])
			}
		}
	}
}

func TestDirichlet(t *testing.T) {
	p := open(t, config(4, 3, "float32", configs.Problem{}))
	equal(t, field(t, p), [][]float64{{0, 1, 1, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}})
	if p.Name() != "dirichlet" {
		t.Errorf("name %q", p.Name())
	}
	c := config(4, 3, "float32", configs.Problem{})
	c.Run.Name = "a plate"
	if name := open(t, c).Name(); name != "a plate" {
		t.Errorf("name %q", name)
	}
}

// Rows that need several chunks, columns that are no multiple of anything.
func TestRowChunks(t *testing.T) {
	for _, nx := range []int{3, chunk, chunk + 1, chunk + 2, chunk + 3, 2*chunk + 2, 1999} {
		p := open(t, config(nx, 4, "float32", configs.Problem{Initial: "ix + 0.25 * y", Top: "7", Left: "1.1"}))
		for iy, got := range field(t, p) {
			for ix, v := range got[1 : nx-1] {
				want := []float64{7, float64(float32(float64(ix+1) + 0.25*(1.0/3))),
					float64(float32(float64(ix+1) + 0.25*(2.0/3))), 0}[iy]
				if v != want {
					t.Fatalf("nx %d, row %d, column %d: %v, want %v", nx, iy, ix+1, v, want)
				}
			}
			if got[0] != float64(float32(1.1)) || got[nx-1] != 0 {
				t.Fatalf("nx %d, row %d: sides %v and %v", nx, iy, got[0], got[nx-1])
			}
		}
	}
}

// What depends on x alone is kept for all rows, and has the values that each row alone would have.
func TestKeptColumns(t *testing.T) {
	const wide = 2*chunk + 77
	text := "sin(3*x)*exp(-y) + (cos(ix) + 1)^2 * y + max(tan(x), y)"
	both := field(t, open(t, config(wide, 5, "float64", configs.Problem{Initial: text})))
	for iy := 1; iy < 4; iy++ {
		for ix := 1; ix < wide-1; ix++ {
			x, y := float64(ix)/float64(wide-1), float64(iy)/4
			c := elementary.Cos(float64(ix)) + 1
			a := float64(elementary.Sin(float64(3*x)) * elementary.Exp(-y))
			want := a + float64(float64(c*c)*y) + max(elementary.Tan(x), y)
			if got := both[iy][ix]; got != want {
				t.Fatalf("row %d, column %d: %v, want %v", iy, ix, got, want)
			}
		}
	}
}

func TestRowArguments(t *testing.T) {
	p := open(t, config(4, 5, "float32", configs.Problem{}))
	for _, c := range []struct {
		row, bytes int
		want       string
	}{
		{-1, 16, "row -1 of 5 into 16 bytes: 16 bytes are wanted"},
		{5, 16, "row 5 of 5 into 16 bytes: 16 bytes are wanted"},
		{0, 15, "row 0 of 5 into 15 bytes: 16 bytes are wanted"},
	} {
		if err := p.Row(c.row, make([]byte, c.bytes)); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	// At column 3 of 9, row 2 of 5: x = 0.375, y = 0.5.
	mesh := solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}
	x, y := 0.375, 0.5
	for text, want := range map[string]float64{
		"1/2": 0.5, "7 % 4": 3, "-7 % 4": -3, "2^10": 1024, "2**-1": 0.5, "-2^2": -4, "1e-3": 1e-3, ".5": 0.5,
		"0x10":                    16,
		"9223372036854775807 + 1": 9223372036854775808, "4611686018427387904 * 4": 18446744073709551616,
		"x": x, "y": y, "ix": 3, "iy": 2, "nx": 9, "ny": 5, "pi": math.Pi, "e": math.E,
		"sin(x)": elementary.Sin(x), "cos(x)": elementary.Cos(x), "tan(x)": elementary.Tan(x),
		"asin(x)": elementary.Asin(x), "acos(x)": elementary.Acos(x), "atan(x)": elementary.Atan(x),
		"sinh(x)": elementary.Sinh(x), "cosh(x)": elementary.Cosh(x), "tanh(x)": elementary.Tanh(x),
		"exp(x)": elementary.Exp(x), "log(x)": elementary.Log(x), "log10(x)": elementary.Log10(x),
		"atan2(x, y)": elementary.Atan2(x, y), "sqrt(x)": math.Sqrt(x), "cbrt(x)": elementary.Cbrt(x), "abs(-x)": x,
		"min(x, y)": x, "max(x, y, 2)": 2, "min(3, x, 1, y)": x,
		"floor(-1.5)": -2, "ceil(1.2)": 2, "round(2.5)": 3, "pow(x, 2)": 0.140625, "hypot(3, 4)": 5, "mod(ix, 2)": 1,
		"float32(pi)":   float64(float32(math.Pi)),
		"x < y ? 1 : 2": 1, "x >= y ? 1 : 2": 2, "x == 0.375 ? 10 : 20": 10, "x != 0.375 ? 10 : 20": 20,
		"x <= y ? x : y": x, "x > y ? x : y": y,
		"0.25 < x < 0.5 ? 1 : 0": 1, "x < 0.1 or y == 0.5 ? 1 : 0": 1, "x < 0.1 && y == 0.5 ? 1 : 0": 0,
		"not (x < 0.1) ? 1 : 0": 1, "!(x < 0.1) ? 1 : 0": 1, "(ix + iy) % 2 == 0 ? 1 : -1": -1,
		"x == 0.375 ? 4 : 1 / 0": 4, "true ? 1 : 0": 1, "(x < y ? y < x : true) ? 1 : 0": 0,
		"x - y - 1": -1.125, "x / y / 2": 0.375, "1 - (2 - (3 - (4 - x)))": 1 - (2 - (3 - (4 - x))), "+x": x,
	} {
		n, err := compile(text, mesh)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := n.at(&span{}, 2, 3); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		// The same as one of several columns.
		var columns [5]float64
		n.fill(&span{row: 2, col: 1}, columns[:])
		if columns[2] != want {
			t.Errorf("%s in a span: %v, want %v", text, columns[2], want)
		}
	}
}

const (
	knownFunctions = "sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, exp, log, log10, sqrt, cbrt, " +
		"abs, min, max, floor, ceil, round, pow, hypot, mod, float32"
	knownWords = "x, y, ix, iy, nx, ny, pi, e, " + knownFunctions
)

// The help and the documents name every function and value, and each of them can be compiled.
func TestWordsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{Help(), string(doc)} {
		for _, w := range slices.Concat(Names(), Functions()) {
			if !regexp.MustCompile(`\b` + w + `\b`).MatchString(text) {
				t.Errorf("%s is missing in\n%s", w, text)
			}
		}
	}
	for _, w := range Names() {
		if _, err := compile(w, solver.Mesh{NX: 8, NY: 8}); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
	for _, w := range Functions() {
		_, one := compile(w+"(1)", solver.Mesh{NX: 8, NY: 8})
		_, two := compile(w+"(1, 1)", solver.Mesh{NX: 8, NY: 8})
		if (one == nil) == (two == nil) {
			t.Errorf("%s: with one argument: %v; with two: %v", w, one, two)
		}
	}
}

func TestBadExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"sin(":                           `column 4: unexpected token EOF`,
		"1 +":                            `column 3: unexpected token EOF`,
		"":                               `column 1: unexpected token EOF`,
		"xx":                             `column 1: unknown name xx; did you mean x?`,
		"1 + zeta":                       "column 5: unknown name zeta; known are " + knownWords,
		"sine(x)":                        `column 1: unknown function sine; did you mean sin?`,
		"sqr(x)":                         `column 1: unknown function sqr; did you mean sqrt?`,
		"x(1)":                           "column 1: unknown function x; known are " + knownFunctions,
		"len(x)":                         "column 1: unknown function len; known are " + knownFunctions,
		"random()":                       "column 1: unknown function random; known are " + knownFunctions,
		"2 * sin":                        `column 5: sin is a function; write sin(…)`,
		"sin(x, y)":                      `column 1: sin takes 1 argument, not 2`,
		"atan2(x)":                       `column 1: atan2 takes 2 arguments, not 1`,
		"pow(1, 2, 3)":                   `column 1: pow takes 2 arguments, not 3`,
		"max(x)":                         `column 1: max takes at least 2 arguments, not 1`,
		"x > 0.5":                        `true or false is no number; write condition ? 1 : 0`,
		"true":                           `true or false is no number; write condition ? 1 : 0`,
		"1 + (x > 0)":                    `column 8: x > 0 is true or false; a number is wanted`,
		"x ? 1 : 2":                      `column 1: x is a number; a condition is wanted, such as x < 0.5`,
		"x and y":                        `column 1: x is a number; a condition is wanted, such as x < 0.5`,
		"x < 1 ? 1 : y < 1":              `column 17: one branch gives a number and the other true or false`,
		`"text"`:                         `column 1: "text" has no place among numbers`,
		"[1, 2]":                         `column 1: [1, 2] has no place among numbers`,
		"x in [1]":                       `column 3: operator in has no place among numbers`,
		"1..5":                           `column 2: operator .. has no place among numbers`,
		"x.y":                            `column 3: x.y has no place among numbers`,
		"math.sin(x)":                    `column 6: math.sin(x) has no place among numbers`,
		"let a = 1; a":                   `column 5: let a = 1; a has no place among numbers`,
		"1; 2":                           `column 1: 1; 2 has no place among numbers`,
		"nil":                            `column 1: nil has no place among numbers`,
		strings.Repeat("1+", 3000) + "1": `6001 characters; at most 4096 are allowed`,
	} {
		if _, err := compile(text, solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}); err == nil ||
			err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestBadProblems(t *testing.T) {
	for _, c := range []struct {
		p    configs.Problem
		want string
	}{
		{configs.Problem{Preset: "none"}, `problem.preset "none": allowed are gtc2019 and dirichlet`},
		{configs.Problem{Left: "siny", Initial: "1 +"},
			`problem.left "siny": column 1: unknown name siny; did you mean sin?` + "\n" +
				`problem.initial "1 +": column 3: unexpected token EOF`},
		{configs.Problem{Preset: "gtc2019", Top: "1"},
			`problem.top "1" and problem.bottom "periodic": both or neither can be periodic`},
		{configs.Problem{Left: "periodic"}, `problem.left "periodic": column 1: unknown name periodic; known are ` +
			knownWords},
		{configs.Problem{Initial: "absent.npy"}, `problem.initial "absent.npy": no such file or directory`},
	} {
		if _, err := New(config(9, 5, "float32", c.p)); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	for _, c := range []struct {
		nx, ny int
		dtype  string
		want   string
	}{
		{2, 5, "float32", "grid.nx 2, grid.ny 5: at least 3 are wanted"},
		{5, 5, "half", `grid.dtype "half": allowed are float32 and float64`},
	} {
		if _, err := New(config(c.nx, c.ny, c.dtype, configs.Problem{})); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A value that a field cannot hold is found by Check where it looks, by Row and MaxAbs everywhere.
func TestValuesNotFinite(t *testing.T) {
	for _, c := range []struct {
		p     configs.Problem
		row   int
		check bool
		want  string
	}{
		{configs.Problem{Left: "1/iy"}, 0, true,
			`problem.left "1/iy" at row 0, column 0 (x = 0, y = 0): +Inf; finite values are wanted`},
		{configs.Problem{Right: "log(y - 0.5)"}, 0, true,
			`problem.right "log(y - 0.5)" at row 0, column 200 (x = 1, y = 0): NaN; finite values are wanted`},
		{configs.Problem{Top: "ix == 77 ? 0/0 : 1"}, 0, true,
			`problem.top "ix == 77 ? 0/0 : 1" at row 0, column 77 (x = 0.385, y = 0): NaN; finite values are wanted`},
		{configs.Problem{Bottom: "1e39"}, 100, true,
			`problem.bottom "1e39" at row 100, column 1 (x = 0.005, y = 1): 1e+39 is too large for float32`},
		{configs.Problem{Initial: "1/(ix - 199)"}, 1, true,
			`problem.initial "1/(ix - 199)" at row 1, column 199 (x = 0.995, y = 0.01): +Inf; finite values are ` +
				`wanted`},
		{configs.Problem{Initial: "ix == 3 and iy == 50 ? -1e39 : 0"}, 50, false,
			`problem.initial "ix == 3 and iy == 50 ? -1e39 : 0" at row 50, column 3 (x = 0.015, y = 0.5): -1e+39 is ` +
				`too large for float32`},
	} {
		p := open(t, config(201, 101, "float32", c.p))
		if err := p.Row(c.row, make([]byte, 201*4)); err == nil || err.Error() != c.want {
			t.Errorf("Row:\ngot  %v\nwant %s", err, c.want)
		}
		if _, err := p.MaxAbs(t.Context(), 0, 101); err == nil || err.Error() != c.want {
			t.Errorf("MaxAbs:\ngot  %v\nwant %s", err, c.want)
		}
		err := p.Check(context.Background())
		if c.check && (err == nil || err.Error() != c.want) {
			t.Errorf("Check:\ngot  %v\nwant %s", err, c.want)
		}
		if !c.check && err != nil {
			t.Errorf("Check: %v", err)
		}
	}
	p := open(t, config(9, 9, "float64", configs.Problem{Initial: "1e39"}))
	equal(t, field(t, p)[1:2], [][]float64{{0, 1e39, 1e39, 1e39, 1e39, 1e39, 1e39, 1e39, 0}})
}

func TestMaxAbs(t *testing.T) {
	for _, p := range []configs.Problem{
		{},
		{Initial: "-3"},
		{Initial: "0.1"},
		{Left: "-5", Initial: "2", Bottom: "7"},
		{Left: "iy", Right: "-2*iy", Initial: "0.1"},
		{Initial: "iy", Top: "ix", Bottom: "-ix"},
		{Initial: "sin(9*x)*cos(7*y)/3"},
		{Preset: "gtc2019"},
		{Preset: "gtc2019", Initial: "-iy*0.3"},
		{Preset: "gtc2019", Initial: "-ix*iy*0.3"},
	} {
		for _, dtype := range []string{"float32", "float64"} {
			q := open(t, config(700, 12, dtype, p))
			rows := field(t, q)
			for lo := range 13 {
				for hi := lo; hi <= 12; hi++ {
					want := 0.0
					for _, r := range rows[lo:hi] {
						for _, v := range r {
							want = max(want, math.Abs(v))
						}
					}
					if got, err := q.MaxAbs(t.Context(), lo, hi); err != nil || got != want {
						t.Fatalf("%+v %s rows [%d, %d): %v, %v; want %v", p, dtype, lo, hi, got, err, want)
					}
				}
			}
		}
	}
	p := open(t, config(9, 9, "float32", configs.Problem{}))
	if _, err := p.MaxAbs(t.Context(), 0, 10); err == nil || err.Error() != "rows [0, 10): the mesh has rows [0, 9)" {
		t.Errorf("error %v", err)
	}
}

func TestMagnitude(t *testing.T) {
	for _, c := range []struct {
		dtype, top string
		want       string // "" for accepted
	}{
		{"float32", "0", ""},
		{"float32", "1e-12", ""},
		{"float32", "9e-13", `problem: its largest absolute value is 9.000000180878209e-13; with float32 0 or 1e-12 ` +
			`to 1e+18 is allowed, because the norm squares it: scale the problem or use grid.dtype float64`},
		{"float32", "1e18", ""},
		{"float32", "-2e18", `problem: its largest absolute value is 1.999999968613499e+18; with float32 0 or 1e-12 ` +
			`to 1e+18 is allowed, because the norm squares it: scale the problem or use grid.dtype float64`},
		{"float64", "2e18", ""},
		{"float64", "1e150", ""},
		{"float64", "1e-120", ""},
		{"float64", "1e151", `problem: its largest absolute value is 1e+151; with float64 0 or 1e-120 to 1e+150 is ` +
			`allowed, because the norm squares it: scale the problem`},
		{"float64", "1e-121", `problem: its largest absolute value is 1e-121; with float64 0 or 1e-120 to 1e+150 is ` +
			`allowed, because the norm squares it: scale the problem`},
	} {
		p := open(t, config(9, 9, c.dtype, configs.Problem{Top: c.top}))
		got := ""
		if err := p.Check(context.Background()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.dtype, c.top, got, c.want)
		}
	}
	p := open(t, config(9, 9, "float32", configs.Problem{}))
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if p.CheckMagnitude(v) == nil {
			t.Errorf("%v accepted", v)
		}
	}
}

func TestContextEndsTheWork(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	const want = "problem: working out its values: enough"
	p := open(t, config(9, 9, "float32", configs.Problem{Left: "y", Initial: "x"}))
	if err := p.Check(ctx); err == nil || err.Error() != want {
		t.Errorf("Check: error %v, want %s", err, want)
	}
	if _, err := p.MaxAbs(ctx, 0, 9); err == nil || err.Error() != want {
		t.Errorf("MaxAbs: error %v, want %s", err, want)
	}
}

// npy returns a .npy file of the given format version with values 0, 1, 2, ... in count elements of the type.
func npy(version byte, descr, order, shape string, count int, size solver.DType) []byte {
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
			if err := os.WriteFile(path, npy(version, descr, "False", "(5, 4)", 20, size), 0o600); err != nil {
				t.Fatal(err)
			}
			p := open(t, config(4, 5, dtype, configs.Problem{Initial: path, Left: "-1", Right: "-2"}))
			equal(t, field(t, p), [][]float64{{-1, 1, 1, -2}, {-1, 5, 6, -2}, {-1, 9, 10, -2}, {-1, 13, 14, -2},
				{-1, 0, 0, -2}})
			if m, err := p.MaxAbs(t.Context(), 0, 5); m != 14 || err != nil {
				t.Errorf("MaxAbs %v, %v", m, err)
			}
			if m, err := p.MaxAbs(t.Context(), 1, 3); m != 10 || err != nil {
				t.Errorf("MaxAbs %v, %v", m, err)
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
	good := npy(1, "<f4", "False", "(5, 4)", 20, solver.Float32)
	nan := npy(1, "<f4", "False", "(5, 4)", 20, solver.Float32)
	binary.LittleEndian.PutUint32(nan[len(nan)-4*(20-9):], math.Float32bits(float32(math.NaN())))
	huge := npy(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
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
		{"integers", npy(1, "<i4", "False", "(5, 4)", 20, solver.Float32),
			"type <i4; <f4, <f8, >f4 or >f8 (float32 or float64) is wanted"},
		{"half", npy(1, "<f2", "False", "(5, 4)", 20, solver.Float32),
			"type <f2; <f4, <f8, >f4 or >f8 (float32 or float64) is wanted"},
		{"huge", huge, "at row 2, column 1 (x = 0.3333333333333333, y = 0.5): 1e+300 is too large for float32"},
		{"transposed", npy(1, "<f4", "False", "(4, 5)", 20, solver.Float32),
			"shape (4, 5); (5, 4) (grid.ny, grid.nx) is wanted"},
		{"flat", npy(1, "<f4", "False", "(20,)", 20, solver.Float32),
			"shape (20,); (5, 4) (grid.ny, grid.nx) is wanted"},
		{"truncated", good[:len(good)-1], "truncated: 149 bytes, 150 are wanted"},
		{"trailing", append(good[:len(good):len(good)], 1, 2, 3), "3 bytes behind the end of the array"},
		{"dictionary", npy(1, "<f4', 'more': '", "False", "(5, 4)", 20, solver.Float32),
			`header "{'descr': '<f4', 'more': '', 'fortran_order': False, 'shape': (5, 4), }\n": descr, ` +
				`fortran_order and shape are wanted`},
		{"escape", npy(1, "\x1b]0;x\a\x1b[2J", "False", "(5, 4)", 20, solver.Float32),
			`type \x1b]0;x\a\x1b[2J; <f4, <f8, >f4 or >f8 (float32 or float64) is wanted`},
		{"nan", nan, "at row 2, column 1 (x = 0.3333333333333333, y = 0.5): NaN; finite values are wanted"},
	} {
		path := filepath.Join(t.TempDir(), c.name+".npy")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := New(config(4, 5, "float32", configs.Problem{Initial: path}))
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
	want := `problem.initial "` + dir + `": a directory; a regular file is wanted`
	if _, err := New(config(4, 5, "float32", configs.Problem{Initial: dir})); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	pipe := filepath.Join(t.TempDir(), "pipe.npy")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	want = `problem.initial "` + pipe + `": a named pipe; a regular file is wanted`
	if _, err := New(config(4, 5, "float32", configs.Problem{Initial: pipe})); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A file that shrinks after it was opened is an error of the row that is gone.
// Values of either type and byte order, and columns one after another, give the field that the plain file gives.
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
		item := npyItems()[c.descr]
		data := npy(1, c.descr, c.fortran, "(5, 4)", 20, item.dtype)
		values := data[len(data)-20*item.dtype.Size():]
		for iy := range 5 {
			for ix := range 4 {
				at, v := 4*iy+ix, float64(4*iy+ix)+0.1
				if c.fortran == "True" {
					at = 5*ix + iy
				}
				if item.dtype == solver.Float32 {
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
		if m, err := p.MaxAbs(t.Context(), 0, 5); m != want[3][2] || err != nil {
			t.Errorf("%v: MaxAbs %v, %v", c, m, err)
		}
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		for i, w := range c.warnings {
			c.warnings[i] = fmt.Sprintf("problem.initial %q: %s", path, w)
		}
		if got := p.Warnings(); !slices.Equal(got, c.warnings) {
			t.Errorf("%v: warnings %q, want %q", c, got, c.warnings)
		}
	}
}

// A mapped file that becomes shorter is an error, and not the end of the process.
func TestMappedInitialFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.npy")
	if err := os.WriteFile(path, npy(1, "<f8", "True", "(5000, 4)", 20000, solver.Float64), 0o600); err != nil {
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

func TestInitialFileShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start.npy")
	if err := os.WriteFile(path, npy(1, "<f4", "False", "(5, 4)", 20, solver.Float32), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, config(4, 5, "float32", configs.Problem{Initial: path}))
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	want := `problem.initial "` + path + `": row 3: read 8 bytes at 122: EOF`
	if err := p.Row(3, make([]byte, 16)); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(npy(1, "<f4", "False", "(5, 4)", 0, solver.Float32))
	f.Add(npy(3, "<f8", "True", "(5,)", 0, solver.Float64))
	f.Add([]byte("\x93NUMPY\x01\x00\x10\x00{'descr': [('a', '<f4')], "))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(strings.NewReader(string(b)))
		if err == nil && (h.size < 10 || h.size > int64(len(b))) {
			t.Errorf("header of %d bytes in %d", h.size, len(b))
		}
	})
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{"sin(2 * float32(pi) * iy / (ny - 1))", "x < 0.5 ? min(x, y, 1) : -x^2",
		"not (x > y) and true", "((1", "a.b[0]", "x ?? y"} {
		f.Add(s)
	}
	mesh := solver.Mesh{NX: 9, NY: 5, DType: solver.Float64}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := compile(text, mesh)
		if err != nil {
			return
		}
		var row [7]float64
		n.fill(&span{row: 2, col: 1}, row[:])
		for i, v := range row {
			if one := n.at(&span{}, 2, 1+i); one != v && one == one {
				t.Errorf("%s at column %d: %v alone, %v in a span", text, 1+i, one, v)
			}
		}
	})
}

func BenchmarkRow(b *testing.B) {
	for name, p := range map[string]configs.Problem{
		"gtc2019":    {Preset: "gtc2019"},
		"one":        {Initial: "1"},
		"eigenmode":  {Initial: "sin(pi*x)*sin(pi*y)"},
		"polynomial": {Initial: "x*(1-x)*y"},
	} {
		b.Run(name, func(b *testing.B) {
			q := open(b, config(16384, 16384, "float32", p))
			buf := make([]byte, q.mesh.RowBytes())
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if err := q.Row(5000, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
