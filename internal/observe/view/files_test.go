package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// write writes files of a run to a new directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	return dir
}

// field returns a file of nx x ny values: that at column x and row y is y + x/1000.
func field(name string, nx, ny int) string {
	m := solver.Mesh{NX: nx, NY: ny, DType: solver.Float64}
	format := output.FormatOf(name, m, 0.25, 0.5)
	b := slices.Clone(format.Head)
	for i := range nx * ny {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i/nx)+float64(i%nx)/1000))
	}
	return string(append(b, format.Tail...))
}

// opened returns the source and the board of a finished run with these files.
func opened(t *testing.T, files map[string]string) (*Files, *Board) {
	t.Helper()
	b := NewBoard()
	f, err := Open(t.Context(), write(t, files), b)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, b
}

// whole returns the frame of a whole mesh of 5 x 3 points.
func whole(t *testing.T, f *Files) *Frame {
	t.Helper()
	frame, err := f.Frame(t.Context(), Window{X1: 5, Y1: 3, Cols: 5, Rows: 3}, 0)
	must(t, err)
	return frame
}

func TestFramesOfFiles(t *testing.T) {
	for _, name := range []string{"field.npy", "u.vti"} {
		f, _ := opened(t, map[string]string{name: field(name, 500, 300)})
		for _, w := range []Window{
			{X1: 500, Y1: 300, Cols: 500, Rows: 300},
			{X1: 500, Y1: 300, Cols: 7, Rows: 5},
			{X0: 100, X1: 108, Y0: 299, Y1: 300, Cols: 512, Rows: 512},
			{X1: 500, Y1: 300, Cols: 1, Rows: 1},
		} {
			got, err := f.Frame(t.Context(), w, 0)
			must(t, err)
			if got.Cols != min(w.Cols, w.X1-w.X0) || got.Rows != min(w.Rows, w.Y1-w.Y0) ||
				len(got.Values) != got.Cols*got.Rows {
				t.Fatalf("%+v: %d x %d cells, %d values", w, got.Cols, got.Rows, len(got.Values))
			}
			for i, v := range got.Values {
				x, y := got.Column(i%got.Cols), got.Row(i/got.Cols)
				if want := float64(y) + float64(x)/1000; v != want {
					t.Fatalf("%s, %+v: %g at column %d, row %d, want %g", name, w, v, x, y, want)
				}
			}
			if _, err := f.Frame(t.Context(), w, got.Number); !errors.Is(err, io.EOF) {
				t.Errorf("a newer frame: %v, want EOF", err)
			}
		}
		for _, w := range []Window{{}, {X1: 501, Y1: 300, Cols: 1, Rows: 1}, {X0: -1, X1: 3, Y1: 3, Cols: 1, Rows: 1},
			{X0: 3, X1: 3, Y1: 3, Cols: 1, Rows: 1}, {X1: 3, Y1: 3, Cols: 1}} {
			if _, err := f.Frame(t.Context(), w, 0); err == nil {
				t.Errorf("window %+v is accepted", w)
			}
		}
	}
}

// configured returns a report of a run of 5 x 3 points that ended an hour after 1970 began, with the coefficient a.
func configured(t *testing.T, a string, change func(*output.Report)) string {
	return report(t, func(r *output.Report) {
		r.Ended = time.Unix(3600, 0)
		r.Config = fmt.Appendf(nil, `{"grid": {"nx": 5, "ny": 3, "dtype": "float64", "width": 1, "height": "auto"},
			"problem": {"left": "1", "coefficient": %q}}`, a)
		change(r)
	})
}

// The files of a problem are those of the run, or a warning says why nothing is known of points outside the material.
func TestFilesOfTheProblem(t *testing.T) {
	const intro = `points outside the material look like others, and nothing is outlined: `
	for name, c := range map[string]struct {
		ended  time.Time
		change func(*output.Report)
		want   string // the warning
	}{
		"found": {time.Unix(3600, 0), func(*output.Report) {}, ""},
		"written late": {time.Unix(3601, 0), func(*output.Report) {},
			`problem.coefficient "A" has changed since the run`},
		"missing": {time.Time{}, func(*output.Report) {}, `problem.coefficient "A": no such file or directory`},
		"of another mesh": {time.Unix(3600, 0),
			func(r *output.Report) { r.Config = bytes.Replace(r.Config, []byte("3,"), []byte("4,"), 1) },
			"the report has a mesh of 5 x 3 points and grid.nx 5, grid.ny 4"},
	} {
		a := filepath.Join(write(t, map[string]string{"a.npy": field("a.npy", 5, 3)}), "a.npy") // 0 at the first point
		must(t, os.Chtimes(a, c.ended, c.ended))
		if name == "missing" {
			a += ".npy"
		}
		f, b := opened(t, map[string]string{"field.npy": field("field.npy", 5, 3),
			"report.json": configured(t, a, c.change)})
		frame := whole(t, f)
		var said struct{ Data []string }
		must(t, json.Unmarshal(b.topics[TopicWarnings].message, &said))
		var want []string
		if c.want != "" {
			want = []string{intro + strings.Replace(c.want, "A", a, 1)}
		}
		if !slices.Equal(said.Data, want) {
			t.Errorf("%s: warnings %q, want %q", name, said.Data, want)
		}
		outlined := bytes.Contains(b.topics[TopicRun].message, []byte(`"outlines":[[`))
		if outside := math.IsNaN(frame.Values[0]); outside != (c.want == "") || outlined != outside {
			t.Errorf("%s: the first value is %g, outlined %v", name, frame.Values[0], outlined)
		}
	}
}

// output.float32 rounds the field of a run of float64.
func TestFloat32FilesOfFloat64Runs(t *testing.T) {
	text := field("field.npy", 5, 3)
	head, rows := text[:len(text)-15*8], []byte(text[len(text)-15*8:])
	rows, err := output.Float32(rows[:0], rows)
	must(t, err)
	f, _ := opened(t, map[string]string{"field.npy": strings.Replace(head, "<f8", "<f4", 1) + string(rows),
		"report.json": report(t, func(*output.Report) {})})
	frame := whole(t, f)
	if v := frame.Values[14]; frame.DType != solver.Float32 || v != float64(float32(2.004)) {
		t.Errorf("the last value is %v of %v, want %v of float32", v, frame.DType, float32(2.004))
	}
}

// sparse makes a file of 2 rows of the longest length that takes no room on the disk, and returns its path. The last
// value is 7.
func sparse(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "field.npy")
	m := solver.Mesh{NX: math.MaxInt32, NY: 2, DType: solver.Float64}
	head := output.FormatOf(path, m, 1, 1).Head
	must(t, os.WriteFile(path, head, 0o600))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	last := binary.LittleEndian.AppendUint64(nil, math.Float64bits(7))
	if _, err := f.WriteAt(last, int64(len(head))+2*int64(m.RowBytes())-8); err != nil {
		t.Fatal(err)
	}
	return path
}

// A frame of long rows takes memory for its points alone.
func TestFrameOfLongRows(t *testing.T) {
	f, err := Open(t.Context(), filepath.Dir(sparse(t, t.TempDir())), NewBoard())
	must(t, err)
	defer f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frame, err := f.Frame(t.Context(), Window{X1: math.MaxInt32, Y1: 2, Cols: 512, Rows: 512}, 0)
	must(t, err)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("a frame of 2 x 512 values took %d bytes", took)
	}
	if n := len(frame.Values); n != 1024 || frame.Values[n-1] != 7 || frame.Values[n-2] != 0 {
		t.Errorf("%d values, the last ones %v", n, frame.Values[n-2:])
	}
}

// The points of a frame grow, begin and end with those of the window, and are evenly spaced.
func TestSpread(t *testing.T) {
	for _, n := range []int{1, 2, 3, 17, 1000, 1 << 31} {
		for _, count := range []int{1, 2, 3, 8, 512, 1024} {
			if count > n {
				continue
			}
			last := -1
			for i := range count {
				at := spread(n, count, i)
				if count > 1 && math.Abs(float64(at)-float64(i)*float64(n-1)/float64(count-1)) > 0.5 || at <= last {
					t.Fatalf("%d of %d: %d after %d", i, n, at, last)
				}
				last = at
			}
			if count > 1 && (spread(n, count, 0) != 0 || last != n-1) {
				t.Errorf("%d of %d: the last is %d", count, n, last)
			}
		}
	}
}

func report(t *testing.T, change func(*output.Report)) string {
	t.Helper()
	norm := 0.25
	r := output.Report{RunID: "r1", Problem: "gtc2019", Mesh: output.MeshReport{NX: 5, NY: 3, DType: "float64"},
		Method: "jacobi", Sweeps: 2, MaxIterations: 2, Norm: &norm, StopReason: solver.MaxIterations,
		Files: []output.FileReport{{Name: "field.npy"}, {Name: "history.csv"}}}
	change(&r)
	data, err := json.Marshal(r)
	must(t, err)
	return string(data)
}

func TestFilesThatAreRefused(t *testing.T) {
	plain := report(t, func(*output.Report) {})
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"empty": {nil, "no report (.json) and no field (.npy, .vti, .zarr) of a run: there is no such file; " +
			"it must be output.dir of a finished run"},
		"damaged field": {map[string]string{"field.npy": "junk"}, "field.npy: not a .npy file; it must be " +
			"output.dir of"},
		"no report": {map[string]string{"report.json": "{}"}, "report.json: no report of a run: run_id and mesh"},
		"many ranks": {map[string]string{"report.json": `{"ranks":[` + strings.Repeat("null,", maxRanks) +
			`{}],"ranks":[]}`},
			"report.json: no report of a run: 16385 ranks; at most 16384 are read"},
		"many objects": {map[string]string{"report.json": `{"files":[` + strings.Repeat("{},", maxObjects) + `{}]}`},
			"report.json: no report of a run: 262146 objects; at most 262144 are read"},
		"damaged report": {map[string]string{"report.json": plain[:40]}, "no report of a run: unexpected end of JSON"},
	} {
		f, err := Open(t.Context(), write(t, c.files), NewBoard())
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing"), NewBoard()); err == nil ||
		!strings.Contains(err.Error(), "missing: must be the directory of a finished run: no such file") {
		t.Errorf("missing: %v", err)
	}
	undecided := report(t, func(r *output.Report) { r.StopReason = solver.Converged })
	if _, err := Open(t.Context(), write(t, map[string]string{"report.json": undecided}), NewBoard()); err == nil ||
		!strings.HasSuffix(err.Error(), "no report of a run: stop_reason converged without decisive") {
		t.Errorf("undecided: %v", err)
	}
}

// A run without its field, or with a field or a history that is not its own, is shown with a warning.
func TestWarningsOfFiles(t *testing.T) {
	plain := report(t, func(*output.Report) {})
	for name, c := range map[string]struct{ field, history, want string }{
		"no field": {"", "iteration,l2_norm\n0,1\n", `["no field: there is no such file"]`},
		"other mesh": {field("field.npy", 4, 3), "0,1\n",
			`["no field: field.npy has 4 x 3 values of float64, and the run had 5 x 3 of float64"]`},
		"history": {field("field.npy", 5, 3), "iteration,l2_norm\n0,1\nx,2\n",
			`["no history: history.csv, line 3: it must have an iteration and its norm"]`},
		"infinite norm": {field("field.npy", 5, 3), "0,inf",
			`["no history: history.csv, line 1: it must have an iteration and its norm"]`},
		"norm that is no number": {field("field.npy", 5, 3), "0,1\n1,nan\n",
			`["no history: history.csv, line 2: it must have an iteration and its norm"]`},
		"long line": {field("field.npy", 5, 3), strings.Repeat("1", 200),
			`["no history: history.csv: bufio.Scanner: token too long"]`},
		"good": {field("field.npy", 5, 3), "iteration,l2_norm\n0,1\n1,0.25\n", `null`},
	} {
		files := map[string]string{"report.json": plain, "history.csv": c.history}
		if c.field != "" {
			files["field.npy"] = c.field
		}
		if name == "no field" {
			files["report.json"] = report(t, func(r *output.Report) { r.Files = r.Files[1:] })
		}
		_, b := opened(t, files)
		if got, want := string(b.topics[TopicWarnings].message), `{"topic":"warnings","data":`+c.want+`}`; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if name == "good" {
			const want = `{"topic":"history","data":{"points":[[0,1],[1,0.25]]}}`
			if got := string(b.topics[TopicHistory].message); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// A frame of any values has a head that JSON can hold.
func TestFramesOfAnyValues(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN with -short: one goroutine races with nobody")
	}
	odd := [12]float64{0, math.Copysign(0, -1), 1, -1, 5e-324, -5e-324, 1e-310, math.MaxFloat64, -math.MaxFloat64,
		math.Inf(1), math.Inf(-1), math.NaN()}
	for _, scale := range []string{output.ScaleAuto, output.ScaleLinear, output.ScaleLog, output.ScaleSqrt} {
		for _, d := range []solver.DType{solver.Float32, solver.Float64} {
			for i := range len(odd) * len(odd) * len(odd) {
				values := []float64{odd[i%12], odd[i/12%12], odd[i/144]}
				w := Window{X1: 3, Y1: 1, Cols: 3, Rows: 1}
				(&Frame{Window: w, DType: d, Scale: scale, Values: values}).encode() // panics if a number is not finite
			}
		}
	}
}

// The line of the tolerance is where the run ended, also with a relative tolerance, which is not one of the first norm.
// One beyond all numbers does not stop the page.
func TestToleranceOfFiles(t *testing.T) {
	for _, c := range []struct {
		tolerance, relative, base float64
		want                      string
	}{{1e-3, 0.5, 4, "2"}, {3, 0.5, 4, "3"}, {0, 0.5, 4, "2"}, {0, 0, 0, "0"},
		{0, 1e300, 1e300, "1.7976931348623157e+308"}} {
		_, b := opened(t, map[string]string{"history.csv": "0,1e30\n", "field.npy": field("field.npy", 5, 3),
			"report.json": report(t, func(r *output.Report) {
				r.Tolerance, r.RelativeTolerance, r.Base = c.tolerance, c.relative, c.base
			})})
		if got := string(b.topics[TopicRun].message); !strings.Contains(got, `"tolerance":`+c.want+`,`) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// A track keeps the newest norm, and no more than its bound however many there are.
func TestTrack(t *testing.T) {
	for _, n := range []int{0, 1, 2, maxPoints, maxPoints + 1, 100_000} {
		var track Track
		for i := range n {
			track.Add(i, float64(i))
		}
		got := track.Points()
		if len(got) > maxPoints+1 || n > 0 && got[len(got)-1] != (Point{n - 1, roster.Number(n - 1)}) ||
			n <= maxPoints && len(got) != n || n > maxPoints && len(got) < maxPoints/2 {
			t.Errorf("%d norms: %d points", n, len(got))
		}
		for i := 2; i < len(got)-1; i++ {
			if got[i].Iteration-got[i-1].Iteration != got[1].Iteration-got[0].Iteration {
				t.Fatalf("%d norms: points %v and %v", n, got[i-1], got[i])
			}
		}
	}
}

// A file that does not hold a whole field is refused.
func TestFieldsThatAreRefused(t *testing.T) {
	npy, vti := field("a.npy", 5, 3), field("a.vti", 5, 3)
	with := func(old, new string) string { return strings.ReplaceAll(vti, old, new) }
	const step = `"0.25 0.5 1"`
	for _, c := range []struct{ name, data, want string }{
		{"a.npy", "junk", "not a .npy file"},
		{"a.npy", npy[:200], "truncated: 200 bytes; it must have 5 x 3 values of float64 from byte 128 on"},
		{"a.vti", vti[:1100], "truncated: 1100 bytes; it must have 5 x 3 values of float64 from byte 1024 on"},
		{"a.vti", "<VTKFile>", "no raw appended data; it must be a .vti file as the launcher writes it"},
		{"a.vti", with("UInt64", "UInt32"), "it must be a flat ImageData of one piece with an array, " +
			"little-endian, with a UInt64 header, without compression"},
		{"a.vti", with("<Piece", "<Peace"), "its XML: XML syntax error on line 8: element <Peace> closed by </Piece>"},
		{"a.vti", with(step, `"Inf Inf 1"`), "spacings +Inf and +Inf: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"0.25 NaN 1"`), "spacings 0.25 and NaN: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"1e308 1 1"`), "spacings 1e+308 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"-1 1 1"`), "spacings -1 and 1: must be above 0 and give the mesh finite sides"},
		{"a.vti", with(step, `"0 1 1"`), "spacings 0 and 1: must be above 0"},
		{"a.vti", with("0 4 0 2 0 0", "0 4 0 -2 0 0"), "a mesh of 5 x -1; sides must have 2 to 2147483647 points"},
	} {
		t.Chdir(t.TempDir())
		must(t, os.WriteFile(c.name, []byte(c.data), 0o600))
		if _, err := openField(c.name); err == nil || err.Error() != c.name+": "+c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

// Points are pairs, whose norms JSON carries to the last bit; null stands for what is no finite number.
func TestPointsAsJSON(t *testing.T) {
	points := []Point{{0, 0.1}, {1, 1e300}, {2, math.SmallestNonzeroFloat64}, {3, 12345678}, {1 << 40, -1e-7},
		{5, roster.Number(math.NaN())}, {6, roster.Number(math.Inf(1))}}
	data, err := json.Marshal(points)
	const want = "[[0,0.1],[1,1e+300],[2,5e-324],[3,1.2345678e+07],[1099511627776,-1e-07],[5,null],[6,null]]"
	if err != nil || string(data) != want {
		t.Fatalf("%s, %v, want %s", data, err, want)
	}
	var read []Point
	must(t, json.Unmarshal(data, &read))
	points[5].Norm, points[6].Norm = 0, 0
	if !slices.Equal(read, points) {
		t.Errorf("read %v, want %v", read, points)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
