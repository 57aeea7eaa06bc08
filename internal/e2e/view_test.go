package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// atURL matches the line with the URL of a view.
const atURL = `the view is at http://127\.0\.0\.1:\d+/\?token=[A-Z2-7]{26}`

// viewURL waits for the URL of a view.
func (l *live) viewURL() string {
	l.t.Helper()
	line := l.waitFor(atURL)
	return regexp.MustCompile(`http://\S+`).FindString(line)
}

// readout is what the page shows at the cursor.
type readout struct{ Column, Row, Value string }

// sameField compares the value at each cell of the frame that the page shows, and the values that it reads out, with
// the field of the mesh of nx columns.
func (p *page) sameField(field []float64, nx int) {
	p.t.Helper()
	var frame struct {
		Cols, Rows int
		Columns    []int
		RowsAt     []int
		Values     []float64
	}
	p.eval(`(f => ({cols: f.cols, rows: f.rows, columns: [...Array(f.cols).keys()].map(i => f.column(i)),
		rowsAt: [...Array(f.rows).keys()].map(j => f.row(j)), values: [...f.values]}))(app.field.frame)`, &frame)
	for i, v := range frame.Values {
		x, y := frame.Columns[i%frame.Cols], frame.RowsAt[i/frame.Cols]
		if want := field[y*nx+x]; v != want {
			p.t.Fatalf("the page has %g at column %d, row %d, want %g", v, x, y, want)
		}
	}
	if len(frame.Values) != frame.Cols*frame.Rows || frame.Cols < 2 || frame.Rows < 2 {
		p.t.Errorf("a frame of %d x %d cells has %d values", frame.Cols, frame.Rows, len(frame.Values))
	}
}

// hover moves the mouse to a place in the picture, given as shares of its sides, and returns what the page reads out.
func (p *page) hover(x, y float64) (r readout) {
	p.t.Helper()
	var at [2]float64
	p.eval(fmt.Sprintf(`((b, f) => [b.left + f.left + %g * f.size[0], b.top + %g * f.size[1]])(
		byId("overlay").getBoundingClientRect(), app.field)`, x, y), &at)
	p.check(chromedp.Do(p.ctx, chromedp.MouseEvent("mouseMoved", at[0], at[1])))
	p.eval(`({...byId("readout").dataset})`, &r)
	return r
}

// The page of a finished run shows the values of its field and its history, and what its report says.
func TestViewOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const nx, ny = 700, 300
	run := run(t, dir, "launcher", append([]string{"-np", "2"}, set("grid.nx=700", "grid.ny=300", "run.name=Nice <b>",
		"solver.max_iterations=50", "solver.tolerance=0.5")...)...)
	if run.code != 0 {
		t.Fatal(run.stderr)
	}
	field := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	report := readReport(t, filepath.Join(dir, "out"))
	history, err := os.ReadFile(filepath.Join(dir, "out", "history.csv"))
	if err != nil {
		t.Fatal(err)
	}

	l := startLive(t, dir, "view", "out")
	p := browse(t, l.viewURL())
	p.await("window.app && app.field.frame && app.chart.points.length && app.ranks.list.length")
	p.sameField(field, nx)
	for _, at := range [][2]float64{{0.001, 0.001}, {0.5, 0.5}, {0.999, 0.999}, {0.3, 0.8}} {
		got := p.hover(at[0], at[1])
		var x, y int
		var v float64
		if _, err := fmt.Sscan(got.Column, &x); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(got.Row, &y); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(got.Value, &v); err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(x)-at[0]*(nx-1)) > 3 || math.Abs(float64(y)-at[1]*(ny-1)) > 3 ||
			float64(float32(v)) != field[y*nx+x] {
			t.Errorf("at %v: %+v, want about column %.0f and %g", at, got, at[0]*(nx-1), field[y*nx+x])
		}
	}
	// The window of columns 100 to 139 and rows 250 to 289 is shown point by point.
	var window [4]int
	p.eval(`(app.pointer.show(100, 140, 250, 290), [app.field.window.x0, app.field.window.x1, app.field.window.y0,
		app.field.window.y1])`, &window)
	if window != [4]int{100, 140, 250, 290} {
		t.Errorf("window %v", window)
	}
	p.await("app.field.frame.shows(app.field.window) && app.field.frame.cols === 40")
	p.sameField(field, nx)

	var shown struct {
		Title, State, Result string
		Points               [][2]float64
		Cells                [][]string
	}
	p.eval(`({title: byId("title").textContent, state: byId("state").textContent, points: app.chart.points,
		result: byId("facts").textContent,
		cells: [...byId("ranks").querySelectorAll("tbody tr")].map(r => [...r.cells].map(c => c.textContent))})`,
		&shown)
	lines := strings.Split(strings.TrimSpace(string(history)), "\n")[1:]
	if len(shown.Points) != len(lines) {
		t.Errorf("%d norms, want %d", len(shown.Points), len(lines))
	}
	for i, point := range shown.Points {
		var sweep int
		var norm float64
		if _, err := fmt.Sscanf(lines[i], "%d,%g", &sweep, &norm); err != nil {
			t.Fatal(err)
		}
		if point != [2]float64{float64(sweep), norm} {
			t.Errorf("norm %v, want %s", point, lines[i])
		}
	}
	if shown.Title != "Nice <b> (gtc2019)" || !strings.Contains(shown.Result, report.FieldSHA256) {
		t.Errorf("title %q, result %q", shown.Title, shown.Result)
	}
	if want := map[string]string{"converged": "converged"}[report.StopReason]; shown.State != want {
		t.Errorf("state %q of a run that ended as %s", shown.State, report.StopReason)
	}
	if len(shown.Cells) != 2 || shown.Cells[1][2] != report.Ranks[1].Device {
		t.Errorf("ranks %q", shown.Cells)
	}
	p.quiet()
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, out := l.end(); code != 0 {
		t.Errorf("Ctrl-C ended the view with %d\n%s", code, out)
	}
}

// From another directory than that of the run the page is the same: it has a field of float32, points outside the
// material of a drawing, and outlines. Axes of nanometres have short labels, whose room is left of the picture.
func TestViewFromElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 65
	hole := image.NewGray(image.Rect(0, 0, n, n))
	draw.Draw(hole, image.Rect(20, 0, n, 10), image.White, image.Point{}, draw.Src)
	var drawing bytes.Buffer
	if err := png.Encode(&drawing, hole); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.png"), drawing.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t, dir, "launcher", append([]string{"-np", "1"}, set("grid.nx=65", "grid.ny=65", "grid.width=2e-8",
		"grid.dtype=float64", "problem.preset=dirichlet", "problem.left=1", "problem.drawing=a.png",
		"problem.colours=#000000; #ffffff coefficient=0", "solver.method=multigrid", "output.float32=true")...)...)
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	l := startLive(t, t.TempDir(), "view", filepath.Join(dir, "out"))
	p := browse(t, l.viewURL())
	p.await("window.app && app.field.frame && app.over()")
	var shown struct {
		Outside, Outlines int
		Warnings          bool
		Left, Widest      float64
		Labels            []string
	}
	p.eval(`({outside: app.field.frame.values.filter(Number.isNaN).length, outlines: app.run.outlines.length,
		warnings: !byId("warnings").hidden, left: app.field.left, labels: app.field.rowTicks.map(([, text]) => text),
		widest: widest(app.field.rowTicks.map(([, text]) => text), 0)})`, &shown)
	if shown.Outside != 45*10 || shown.Outlines == 0 || shown.Warnings {
		t.Errorf("%+v", shown)
	}
	if want := []string{"0", "5.0e-9", "1.0e-8", "1.5e-8", "2.0e-8"}; !slices.Equal(shown.Labels, want) ||
		shown.Left < shown.Widest+10 {
		t.Errorf("labels %q, want %q; %g points for %g", shown.Labels, want, shown.Left, shown.Widest)
	}
	var labels [][]string
	p.eval(`[[0, 1, 5], [0.5, 0.50004, 4], [2e-8, 2.0003e-8, 3], [0, 3e6, 3], [-1, 1, 2], [5, 5.5, 1]].map((a) =>
		ticks(...a).map(([, text]) => text))`, &labels)
	want := [][]string{{"0", "0.2", "0.4", "0.6", "0.8", "1.0"},
		{"0.50000", "0.50001", "0.50002", "0.50003", "0.50004"},
		{"2.0000e-8", "2.0001e-8", "2.0002e-8", "2.0003e-8"}, {"0", "1e+6", "2e+6", "3e+6"}, {"-1", "0", "1"},
		{"5.0", "5.5"}}
	if !slices.EqualFunc(labels, want, slices.Equal) {
		t.Errorf("labels %q, want %q", labels, want)
	}
	p.quiet()
}

// What cannot be shown is refused in one line.
func TestViewsThatAreRefused(t *testing.T) {
	dir, taken := t.TempDir(), takenPort(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{set("view.listen=" + taken), fmt.Sprintf("launcher: view.listen %q: bind: address already in use\n", taken)},
		{set("view.listen=0.0.0.0:80"), `launcher: view.listen "0.0.0.0:80": must be an address of this machine ` +
			`alone with ` +
			"a port, as in 127.0.0.1:0, where 0 is any free port; ssh -L reaches it from elsewhere\n"},
		{[]string{"view", "."}, "launcher: .: no report (.json) and no field (.npy, .vti, .zarr) of a run: " +
			"there is no such file; it must be output.dir of a finished run\n"},
		{[]string{"view", "nowhere"}, "launcher: nowhere: must be the directory of a finished run: no such file " +
			"or directory\n"},
	} {
		if got := run(t, dir, "launcher", c.args...); got.code != 1 || got.stderr != c.want || got.stdout != "" {
			t.Errorf("%v: code %d, %q, want %q", c.args, got.code, got.stderr, c.want)
		}
	}
}

// A viewer finds the run at a server of the user, shows it, and ends with it.
func TestViewOfARunAtAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "secret"), []byte("0123456789abcdef0123456789abcdef\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	at := startServer(t).String()
	keys := append([]string{"nats.url=" + at, "nats.secret_file=secret"}, endless...)
	if got := run(t, dir, "launcher", "view", at); got.code != 1 ||
		!strings.Contains(got.stderr, "launcher: no run gives a sign of life at nats://") {
		t.Errorf("without a run: code %d, %q", got.code, got.stderr)
	}
	l := startLive(t, dir, append([]string{"-np", "2"}, set(keys...)...)...)
	l.waitFor(progress)
	l.yield()
	if got := run(t, dir, "launcher", "view", at); got.code != 1 ||
		!strings.Contains(got.stderr, "rank 0 of the run does not answer in a way that can be read here") {
		t.Errorf("without the secret: code %d, %q", got.code, got.stderr)
	}
	viewer := startLive(t, dir, append([]string{"view", at}, set("nats.secret_file=secret")...)...)
	p := browse(t, viewer.viewURL())
	p.await("window.app && app.field.frame && app.ranks.list.length === 2")
	var window [2]int
	p.eval("(app.pointer.show(10, 40, 20, 50), [app.field.window.x0, app.field.window.x1])", &window)
	p.await("app.field.frame.shows(app.field.window) && app.field.frame.cols === 30")
	if window != [2]int{10, 40} {
		t.Errorf("window of columns %v", window)
	}
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.await(`byId("state").textContent === "ended"`)
	if code, out := l.end(); code != 130 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if code, out := viewer.end(); code != 0 {
		t.Errorf("the viewer ended with %d\n%s", code, out)
	}
	report := readReport(t, filepath.Join(dir, "out"))
	p.await(fmt.Sprintf("app.field.frame.sweeps === %d", report.Sweeps))
	field := readField(t, filepath.Join(dir, "out", "field.npy"), endlessNX, endlessNY)
	p.sameField(field, endlessNX)
	p.quiet()
}

// The page of a run that is over before a browser opens waits for one, and shows the field from its file. All places
// count what the method does.
func TestViewOfAShortRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLive(t, dir, append([]string{"-np", "2", "--view"}, set("grid.nx=65", "grid.ny=65",
		"problem.preset=dirichlet", "problem.top=1", "solver.method=multigrid", "grid.dtype=float64",
		"solver.tolerance=1e-6")...)...)
	url := l.viewURL()
	l.waitFor("launcher: waiting up to 5s for a browser at the view; Ctrl-C ends that")
	p := browse(t, url)
	p.await("window.app && app.field.frame && app.over()")
	p.sameField(readField(t, filepath.Join(dir, "out", "field.npy"), 65, 65), 65)
	var shown struct{ State, Tile, Head, Caption string }
	p.eval(`({state: byId("state").textContent, tile: byId("tiles").querySelector("dt").textContent,
		head: byId("ranks").querySelectorAll("th")[4].textContent, caption: byId("caption").textContent})`, &shown)
	if shown.State != "converged" || shown.Tile != "Cycles" || shown.Head != "Cycles" ||
		!regexp.MustCompile(`^after \d+ cycles`).MatchString(shown.Caption) {
		t.Errorf("%+v", shown)
	}
	code, output := l.end()
	if code != 0 || !strings.Contains(output, "launcher: launcher view out shows this run again\n") {
		t.Errorf("exit code %d\n%s", code, output)
	}
}
