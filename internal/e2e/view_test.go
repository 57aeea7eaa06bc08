package e2e

import (
	"bytes"
	"encoding/base64"
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
	mustRun(t, dir, "launcher", onRanks(2, "grid.nx=700", "grid.ny=300", "run.name=Nice <b>",
		"solver.max_iterations=50", "solver.tolerance=0.5")...)
	field := readField(t, filepath.Join(dir, "out", "field.npy"), nx, ny)
	report := readReport(t, filepath.Join(dir, "out"))
	l := startLive(t, dir, "view", "out")
	p := browse(t, l.viewURL())
	p.await("window.app && app.field.frame && app.chart.points.length && app.ranks.list.length")
	p.sameField(field, nx)
	for _, at := range [][2]float64{{0.001, 0.001}, {0.5, 0.5}, {0.999, 0.999}, {0.3, 0.8}} {
		got := p.hover(at[0], at[1])
		var x, y int
		var v float64
		if _, err := fmt.Sscan(got.Column+" "+got.Row+" "+got.Value, &x, &y, &v); err != nil {
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
	norms := normsOf(t, readText(t, dir, "out", "history.csv"))
	if len(shown.Points) != len(norms) {
		t.Fatalf("%d norms, want %d", len(shown.Points), len(norms))
	}
	for i, point := range shown.Points {
		if want := [2]float64{float64(i), norms[i]}; point != want {
			t.Errorf("norm %v, want %v", point, want)
		}
	}
	if shown.Title != "Nice <b> (gtc2019)" || !strings.Contains(shown.Result, report.FieldHash) {
		t.Errorf("title %q, result %q", shown.Title, shown.Result)
	}
	if shown.State != "converged" || report.StopReason != "converged" {
		t.Errorf("state %q of a run that ended as %s", shown.State, report.StopReason)
	}
	if len(shown.Cells) != 2 || shown.Cells[1][2] != report.Ranks[1].Device {
		t.Errorf("ranks %q", shown.Cells)
	}
	p.quiet()
	l.signal(syscall.SIGINT)
	l.ends(0)
}

// From another directory than that of the run the page is the same: it has a field of float32, points outside the
// material of a drawing, and outlines. Axes of nanometres have short labels, whose room is left of the picture.
func TestViewFromElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 64 // a pixel for each cell
	hole := image.NewGray(image.Rect(0, 0, n, n))
	draw.Draw(hole, image.Rect(20, 0, n, 10), image.White, image.Point{}, draw.Src)
	var drawing bytes.Buffer
	if err := png.Encode(&drawing, hole); err != nil {
		t.Fatal(err)
	}
	writeText(t, drawing.String(), dir, "a.png")
	mustRun(t, dir, "launcher", onRanks(1, "grid.nx=65", "grid.ny=65", "grid.width=2e-8", "grid.dtype=float64",
		"problem.preset=dirichlet", "problem.left=1", "problem.drawing=a.png", "output.float32=true",
		"problem.colours=#000000; #ffffff coefficient=0", "solver.method=multigrid")...)
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
	if shown.Outside != 44*10 || shown.Outlines == 0 || shown.Warnings {
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

// A port in use is refused in one line. What else cannot be shown is tested in package view.
func TestViewsThatAreRefused(t *testing.T) {
	taken := takenPort(t)
	run(t, t.TempDir(), "launcher", set("view.listen="+taken)...).fails(t, 1,
		fmt.Sprintf("launcher: view.listen %q: bind: address already in use\n", taken))
}

// A viewer finds the run at a server of the user, shows it, and ends with it.
func TestViewOfARunAtAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := bytes.Repeat([]byte("0123456789abcdef"), 2)
	if err := os.WriteFile(filepath.Join(dir, "secret"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	at := startServer(t).String()
	keys := append([]string{"nats.url=" + at, "nats.secret_file=secret"}, endless...)
	run(t, dir, "launcher", "view", at).fails(t, 1, "launcher: no run gives a sign of life at nats://")
	l := startLive(t, dir, append([]string{"-np", "2"}, set(keys...)...)...)
	l.waitFor(progress)
	l.yield()
	run(t, dir, "launcher", "view", at).fails(t, 1, "rank 0 of the run does not answer in a way that can be read here")
	viewer := startLive(t, dir, append([]string{"view", at}, set("nats.secret_file=secret")...)...)
	p := browse(t, viewer.viewURL())
	p.await("window.app && app.field.frame && app.ranks.list.length === 2")
	var window [2]int
	p.eval("(app.pointer.show(10, 40, 20, 50), [app.field.window.x0, app.field.window.x1])", &window)
	p.await("app.field.frame.shows(app.field.window) && app.field.frame.cols === 30")
	if window != [2]int{10, 40} {
		t.Errorf("window of columns %v", window)
	}
	l.signal(syscall.SIGINT)
	p.await(`byId("state").textContent === "ended"`)
	l.ends(130)
	viewer.ends(0)
	report := readReport(t, filepath.Join(dir, "out"))
	p.await(fmt.Sprintf("app.field.frame.sweeps === %d", report.Sweeps))
	p.sameField(readField(t, filepath.Join(dir, "out", "field.npy"), endlessNX, endlessNY), endlessNX)
	p.quiet()
}

// The page of a run that is over before a browser opens waits for one, and shows the field from its file. All places
// count what the method does.
func TestViewOfAShortRun(t *testing.T) {
	t.Parallel()
	dir, p := t.TempDir(), browser(t) // which may take longer to start than the page waits
	l := startLive(t, dir, append(onRanks(2, "grid.nx=65", "grid.ny=65", "problem.preset=dirichlet", "problem.top=1",
		"solver.method=multigrid", "grid.dtype=float64", "solver.tolerance=1e-6"), "--view")...)
	url := l.viewURL()
	l.waitFor("launcher: waiting up to 20s for a browser at the view; Ctrl-C ends that")
	p.open(url)
	p.await("window.app && app.field.frame && app.over()")
	p.sameField(readField(t, filepath.Join(dir, "out", "field.npy"), 65, 65), 65)
	var shown struct{ State, Tile, Head, Caption string }
	p.eval(`({state: byId("state").textContent, tile: byId("tiles").querySelector("dt").textContent,
		head: byId("ranks").querySelectorAll("th")[4].textContent, caption: byId("caption").textContent})`, &shown)
	if shown.State != "converged" || shown.Tile != "Cycles" || shown.Head != "Cycles" ||
		!regexp.MustCompile(`^after \d+ cycles`).MatchString(shown.Caption) {
		t.Errorf("%+v", shown)
	}
	l.ends(0, "launcher: launcher view out shows this run again\n")
}

// The page of a finished run draws contours and the profile along a line, changes the colours, and saves the picture.
func TestToolsOfTheView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustRun(t, dir, "launcher", set(cycling("grid.nx=65", "grid.ny=33", "grid.width=4", "problem.left=-1",
		"problem.right=3", "problem.top=neumann(0)", "problem.bottom=neumann(0)", "output.field=field.npy",
		"problem.initial=0")...)...)
	field := readField(t, filepath.Join(dir, "out", "field.npy"), 65, 33)
	l := startLive(t, dir, "view", "out")
	p := browse(t, l.viewURL())
	p.await("window.app && app.field.frame && app.field.frame.cols === 65")
	const pixels = `(() => { const from = byId("picture"), c = document.createElement("canvas");
		c.width = from.width, c.height = from.height;
		const d2 = c.getContext("2d");
		d2.drawImage(from, 0, 0);
		const d = d2.getImageData(0, 0, c.width, c.height).data;
		const first = window.firstPixels ??= d;
		let darker = 0, coloured = 0;
		for (let i = 0; i < d.length; i += 4) {
			darker += d[i] + d[i + 1] + d[i + 2] < first[i] + first[i + 1] + first[i + 2] - 60;
			coloured += Math.abs(d[i] - d[i + 2]) > 100;
		}
		return [darker, coloured];
	})()`
	var plain, lined, grey [2]int
	p.eval(pixels, &plain)
	p.eval(`(byId("contours").click(), `+pixels+")", &lined)
	if plain[0] != 0 || lined[0] < 12*100 { // 12 lines from top to bottom
		t.Errorf("%d darker pixels without contours, %d with", plain[0], lined[0])
	}
	p.eval(`(byId("map").value = "grey", byId("map").dispatchEvent(new Event("change")), `+pixels+")", &grey)
	if plain[1] < 1000 || grey[1] != 0 {
		t.Errorf("%d coloured pixels, %d in grey", plain[1], grey[1])
	}

	var profile [][2]float64
	p.eval(`(byId("line").click(), app.pointer.profile.values())`, &profile)
	for _, v := range profile { // from left to right, where the field is linear
		if want := -1 + v[0]; math.Abs(v[1]-want) > 1e-6 {
			t.Fatalf("%v at a distance of %v, want %v", v[1], v[0], want)
		}
	}
	if n := len(profile); n < 100 || math.Abs(profile[n-1][0]-4) > 1e-12 || profile[n-1][1] != field[16*65+64] {
		t.Errorf("%d values, the last at %v", n, profile[n-1])
	}
	var text string
	p.eval(`(app.pointer.profile.set([0, 0], [1, 1]), byId("profile-text").textContent)`, &text)
	if text != "from (0, 0) to (4, 2), length 4.4721" {
		t.Errorf("the profile is %q", text)
	}

	var saved [2]string
	p.eval(`(() => { let got; HTMLAnchorElement.prototype.click = function () { got = [this.download, this.href]; };
		byId("save").click(); return got; })()`, &saved)
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(saved[1], "data:image/png;base64,"))
	if err != nil || saved[0] != "field.png" {
		t.Fatalf("%q: %v", saved[0], err)
	}
	if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() < 400 {
		t.Errorf("the picture: %v", err)
	}
	p.quiet()
}
