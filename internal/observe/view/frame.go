package view

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// maxCells bounds the columns and the rows of a frame.
const maxCells = 1024

// Window is a part of the mesh, the columns [X0, X1) and the rows [Y0, Y1). Cols x Rows of its points are shown. They
// are as evenly spaced as points of the mesh can be, and those of the corners are among them.
type Window struct {
	X0   int `json:"x0"`
	X1   int `json:"x1"`
	Y0   int `json:"y0"`
	Y1   int `json:"y1"`
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// In returns w with at most as many columns and rows as it has points and as a frame may have. It fails if w is empty
// or not within a mesh of nx x ny points.
func (w Window) In(nx, ny int) (Window, error) {
	if w.X0 < 0 || w.X1 > nx || w.X0 >= w.X1 || w.Y0 < 0 || w.Y1 > ny || w.Y0 >= w.Y1 || w.Cols < 1 || w.Rows < 1 {
		return w, fmt.Errorf("window %+v: must be a part of %d x %d points", w, nx, ny)
	}
	w.Cols, w.Rows = min(w.Cols, w.X1-w.X0, maxCells), min(w.Rows, w.Y1-w.Y0, maxCells)
	return w, nil
}

// Column returns the column of the mesh that column i of the frame shows.
func (w Window) Column(i int) int { return w.X0 + spread(w.X1-w.X0, w.Cols, i) }

// Row returns the row of the mesh that row i of the frame shows.
func (w Window) Row(i int) int { return w.Y0 + spread(w.Y1-w.Y0, w.Rows, i) }

// spread returns the i-th of count points among n, the first and the last of which are 0 and n-1.
func spread(n, count, i int) int {
	if count == 1 {
		return 0
	}
	return (2*i*(n-1) + count - 1) / (2 * (count - 1))
}

// Frame holds values of the field at points of a window.
type Frame struct {
	Window
	Number  uint64 // of this frame; later ones of the same Source have higher numbers
	Sweeps  int    // iterations before it
	DType   solver.DType
	Values  []float64 // Rows x Cols, row by row; float32 values are exact
	Scale   string    // output.ScaleAuto or another one
	encoded []byte
}

// Source gives frames.
type Source interface {
	// Frame returns a frame of the window w with a number above after. It waits for it until ctx ends.
	Frame(ctx context.Context, w Window, after uint64) (*Frame, error)
}

// head precedes the values of a frame that goes to a page.
type head struct {
	Window
	Number uint64     `json:"number"`
	Sweeps int        `json:"sweeps"`
	Bytes  int        `json:"bytes"` // of a value: 4 or 8
	Bar    output.Bar `json:"bar"`
}

// encode returns the frame as a page gets it: the length of the head, u32, the head as JSON, padded by spaces to a
// multiple of 8 bytes together with the length, and the values in the field's type. All is little-endian. A Source
// calls encode before it hands out a frame to several pages.
func (f *Frame) encode() []byte {
	if f.encoded != nil {
		return f.encoded
	}
	h, err := json.Marshal(head{f.Window, f.Number, f.Sweeps, f.DType.Size(), f.bar(f.Scale)})
	if err != nil {
		panic("view: " + err.Error()) // a bar holds finite numbers only
	}
	for (4+len(h))%8 != 0 {
		h = append(h, ' ')
	}
	b := make([]byte, 0, 4+len(h)+len(f.Values)*f.DType.Size())
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(h))), h...)
	for _, v := range f.Values {
		if f.DType == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	f.encoded = b
	return b
}

// Float is a float64 that JSON carries even if it is infinite or NaN: as null.
type Float float64

// MarshalJSON implements json.Marshaler.
func (f Float) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
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
			NX, NY int
			DType  string
			Width  float64
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
	cfg.Grid.NX, cfg.Grid.NY, cfg.Grid.DType, cfg.Grid.Width = c.Grid.NX, c.Grid.NY, c.Grid.DType, c.Grid.Width
	cfg.Grid.Height, _ = c.Grid.Height.(float64)
	cfg.Problem = c.Problem
	for _, input := range cfg.Inputs() {
		if info, err := os.Stat(input.Path); err == nil && info.ModTime().After(r.Ended) {
			return nil, fmt.Errorf("%s %q has changed since the run", input.Key, input.Path)
		}
	}
	return problem.New(ctx, cfg)
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
