package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Files is the Source of a finished run: the file with its field.
type Files struct {
	mu    sync.Mutex // a frame reads many rows: one at a time
	field *fieldFile
	// problem tells which points lie outside the material, and what to outline; nil if it is not known.
	problem *problem.Problem
	sweep   int
	scale   string
	none    error // why there is no field; nil if there is one
}

// Open fills the board with what the files of a finished run in dir say, and returns the source of its frames. It fails
// if there is neither a report nor a field.
func Open(ctx context.Context, dir string, board *Board) (*Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: must be the directory of a finished run: %w", dir, errors.Unwrap(err))
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	report, err := readReport(dir, names)
	if err != nil {
		return nil, err
	}
	f := &Files{scale: output.ScaleAuto}
	var warnings []string
	if err := f.open(dir, names, report); err != nil {
		if report == nil {
			return nil, fmt.Errorf("%s: no report (.json) and no field (%s) of a run: %w; it must be output.dir of a "+
				"finished run", show.Text(dir), strings.Join(configs.FieldEndings(), ", "), err)
		}
		f.none = err
		warnings = append(warnings, "no field: "+show.Text(err.Error()))
	}
	if err := f.know(ctx, report); err != nil {
		warnings = append(warnings, unknown(err))
	}
	run, progress := f.describe(ctx, dir, report)
	if report != nil {
		for _, text := range faultsOf(*report) {
			warnings = append(warnings, show.Text(text))
		}
		board.Set(TopicRanks, ranksOf(*report))
	}
	points, err := readHistory(dir, pick(names, report, ".csv"))
	switch {
	case err == nil:
		board.Set(TopicHistory, History{points})
	case !errors.Is(err, errNoFile):
		warnings = append(warnings, "no history: "+show.Text(err.Error()))
	}
	board.Set(TopicRun, run)
	board.Set(TopicProgress, progress)
	board.Set(TopicWarnings, warnings)
	return f, nil
}

// open opens the field.
func (f *Files) open(dir string, names []string, report *output.Report) error {
	name := pick(names, report, configs.FieldEndings()...)
	if name == "" {
		return errNoFile
	}
	field, err := openField(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if m := field.mesh; report != nil && !holds(m, report.Mesh) {
		_ = field.f.Close() // nothing was written
		return fmt.Errorf("%s has %d x %d values of %v, and the run had %d x %d of %s", show.Text(name), m.NX, m.NY,
			m.DType, report.Mesh.NX, report.Mesh.NY, show.Text(report.Mesh.DType))
	}
	f.field = field
	if report != nil {
		f.sweep = report.Sweeps
		f.scale = scaleOf(report.Config)
	}
	return nil
}

// holds reports whether a file with the mesh m can hold the field of a run on the mesh r. output.float32 rounds it.
func holds(m solver.Mesh, r output.MeshReport) bool {
	return m.NX == r.NX && m.NY == r.NY && (m.DType.String() == r.DType || m.DType == solver.Float32)
}

// describe returns what the page says of a finished run.
func (f *Files) describe(ctx context.Context, dir string, r *output.Report) (Run, Progress) {
	if r == nil {
		m := f.field.mesh
		return Run{Title: show.Text(filepath.Base(dir)), NX: m.NX, NY: m.NY, DType: m.DType.String(), HX: f.field.hx,
				HY: f.field.hy},
			Progress{State: Ended, Text: "A field without a report."}
	}
	run := RunOf(*r)
	if f.problem != nil {
		run.Outlines, _ = f.problem.Outlines(ctx) // or none
	}
	if f.none != nil {
		run.NoField = show.Text(f.none.Error())
	}
	return run, EndOf(*r)
}

// Frame implements Source.
func (f *Files) Frame(ctx context.Context, w Window, after uint64) (*Frame, error) {
	if f.none != nil || after > 0 {
		return nil, io.EOF
	}
	m := f.field.mesh
	w, err := w.In(m.NX, m.NY)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	frame := &Frame{Window: w, Number: 1, Sweeps: f.sweep, DType: m.DType, Scale: f.scale,
		Values: make([]float64, 0, w.Cols*w.Rows)}
	values := make([]float64, min(maxPart, w.X1-w.X0))
	part := make([]byte, len(values)*m.DType.Size())
	for y := range w.Rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.row(frame, w.Row(y), part, values); err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// maxPart bounds the values of a row that are read at once, whatever the length of the row.
const maxPart = 1 << 16

// row appends the values of a row of the mesh to the frame. part and values are buffers for as many values.
func (f *Files) row(frame *Frame, row int, part []byte, values []float64) error {
	size := frame.DType.Size()
	for x := 0; x < frame.Cols; {
		lo, next := frame.Column(x), x+1
		for next < frame.Cols && frame.Column(next)-lo < len(values) {
			next++
		}
		n := frame.Column(next-1) + 1 - lo
		if err := f.field.row(row, lo, part[:n*size]); err != nil {
			return err
		}
		frame.DType.Decode(values[:n], part[:n*size])
		for ; x < next; x++ {
			frame.Values = append(frame.Values, values[frame.Column(x)-lo])
		}
	}
	return f.hide(frame, row, frame.Values[len(frame.Values)-frame.Cols:])
}

// Close closes the field.
func (f *Files) Close() error {
	if f.none != nil {
		return nil
	}
	err := f.field.f.Close()
	if f.problem != nil {
		err = errors.Join(err, f.problem.Close())
	}
	return err
}

var errNoFile = errors.New("there is no such file")

// pick returns the name of the file that has one of the endings: the one that the report lists, or the first one in
// the directory if there is no report; "" if there is none.
func pick(names []string, report *output.Report, endings ...string) string {
	if report != nil {
		names = nil
		for _, file := range report.Files {
			names = append(names, file.Name)
		}
	}
	i := slices.IndexFunc(names, func(name string) bool {
		return slices.Contains(endings, strings.ToLower(filepath.Ext(name)))
	})
	if i < 0 || names[i] != filepath.Base(names[i]) { // a report may be forged
		return ""
	}
	return names[i]
}

// readHistory returns the norms of a history, thinned out.
func readHistory(dir, name string) ([]Point, error) {
	if name == "" {
		return nil, errNoFile
	}
	file, err := regular.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const maxLine = 128
	var track Track
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, maxLine), maxLine)
	for n := 0; lines.Scan(); n++ {
		iteration, norm, ok := strings.Cut(lines.Text(), ",")
		if n == 0 && lines.Text() == "iteration,l2_norm" {
			continue
		}
		i, e1 := strconv.Atoi(iteration)
		v, e2 := strconv.ParseFloat(norm, 64)
		if !ok || e1 != nil || e2 != nil || !(v >= 0 && v <= math.MaxFloat64) {
			return nil, fmt.Errorf("%s, line %d: it must have an iteration and its norm", name, n+1)
		}
		track.Add(i, v)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return track.Points(), nil
}

// maxColumns bounds the rows of a problem, which are read as a whole.
const maxColumns = 1 << 20

// know opens the problem of a report, which tells which points lie outside the material, and what to outline. The
// error says why that is not known.
func (f *Files) know(ctx context.Context, r *output.Report) error {
	if f.none != nil || r == nil {
		return nil
	}
	p, err := problemOf(ctx, *r)
	if err == nil {
		f.problem = p
	}
	return err
}

// unknown is the warning about an error of know.
func unknown(err error) string {
	return "points outside the material look like others, and nothing is outlined: " + show.Text(err.Error())
}

// problemOf returns the problem of a report; nil if the report has no configuration.
func problemOf(ctx context.Context, r output.Report) (*problem.Problem, error) {
	var c struct {
		Grid struct {
			configs.Grid
			Height any // "auto" or a number
		}
		Problem configs.Problem
	}
	if err := json.Unmarshal(r.Config, &c); err != nil || c.Grid.NX == 0 {
		return nil, nil
	}
	switch {
	case c.Grid.NX != r.Mesh.NX || c.Grid.NY != r.Mesh.NY:
		return nil, fmt.Errorf("the report has a mesh of %d x %d points and grid.nx %d, grid.ny %d", r.Mesh.NX,
			r.Mesh.NY, c.Grid.NX, c.Grid.NY)
	case c.Grid.NX > maxColumns:
		return nil, fmt.Errorf("grid.nx %d: rows of at most %d points are looked at", c.Grid.NX, maxColumns)
	}
	cfg := configs.Default()
	cfg.Grid, cfg.Problem = c.Grid.Grid, c.Problem
	cfg.Grid.Height, _ = c.Grid.Height.(float64)
	for _, input := range cfg.Inputs() {
		if info, err := os.Stat(input.Path); err == nil && info.ModTime().After(r.Ended) {
			return nil, fmt.Errorf("%s %q has changed since the run", input.Key, input.Path)
		}
	}
	p, err := problem.New(ctx, cfg)
	if err == nil && r.Setup != nil && r.Setup.LeftOut.Parts > 0 {
		if err = p.FindIslands(ctx); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, err
}

// hide gives values of a frame's row NaN where the points lie outside the material.
func (f *Files) hide(frame *Frame, row int, values []float64) error {
	if f.problem == nil || !f.problem.Porous() {
		return nil
	}
	outside := make([]bool, f.problem.Mesh().NX)
	err := f.problem.OutsideRow(row, outside)
	for i := range values {
		if outside[frame.Column(i)] {
			values[i] = math.NaN()
		}
	}
	return err
}
