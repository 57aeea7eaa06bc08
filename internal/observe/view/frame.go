package view

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

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
	f.encoded = make([]byte, 4+len(h)+len(f.Values)*f.DType.Size())
	binary.LittleEndian.PutUint32(f.encoded, uint32(len(h)))
	f.DType.Encode(f.encoded[4+copy(f.encoded[4:], h):], f.Values)
	return f.encoded
}

// bar returns the colour bar of f.
func (f *Frame) bar(scale string) output.Bar {
	cells := make([][]float64, f.Rows)
	for y := range cells {
		cells[y] = f.Values[y*f.Cols : (y+1)*f.Cols]
	}
	return output.NewBar(scale, cells, f.DType, 6)
}

// The names of the subjects of a run, for roster.Subject, on which viewers and ranks meet.
const (
	AskName   = "view.ask"   // an Ask to all ranks
	RowsName  = "view.rows"  // Rows to all viewers
	AboutName = "view.about" // an About of rank 0 to all viewers
)

// Limits of the messages.
const (
	// Lease is how long ranks follow an Ask that is not repeated.
	Lease      = 3 * time.Second
	maxWindows = 4       // of one viewer
	maxAsk     = 4 << 10 // bytes
	maxAbout   = 8 << 20 // bytes
)

// Ask is what a viewer wants to see. It replaces its earlier ones, and is repeated before Lease has passed.
type Ask struct {
	Viewer  string   `json:"viewer"`
	Windows []Window `json:"windows,omitempty"` // within the mesh; without any, the viewer wants an About only
	// Cost is the largest cost, in seconds, of the newest frame that the viewer knows of any rank.
	Cost float64 `json:"cost,omitempty"`
}

// ParseAsk decodes an Ask about a mesh of nx x ny points.
func ParseAsk(data []byte, nx, ny int) (Ask, error) {
	var a Ask
	if len(data) > maxAsk {
		return a, fmt.Errorf("a question of %d bytes: at most %d are allowed", len(data), maxAsk)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, err
	}
	if a.Viewer == "" || len(a.Viewer) > 64 || len(a.Windows) > maxWindows || !(a.Cost >= 0) || math.IsInf(a.Cost, 0) {
		return a, errors.New("a question without a viewer, or with too many windows")
	}
	for i, w := range a.Windows {
		var err error
		if a.Windows[i], err = w.In(nx, ny); err != nil {
			return a, err
		}
	}
	return a, nil
}

// About is what rank 0 tells viewers of its run.
type About struct {
	Run    Run     `json:"run"`
	Scale  string  `json:"scale"`
	Ranks  []Rank  `json:"ranks"`
	Points []Point `json:"points"`
}

// Rows are some rows of the frame of a window.
type Rows struct {
	Window
	Viewer string  `json:"viewer"`
	Sample uint64  `json:"sample"` // of the ranks, from 1: a frame has one sample of all ranks
	Sweeps int     `json:"sweeps"`
	At     []int   `json:"at"`    // rows of the frame
	Bytes  int     `json:"bytes"` // of a value
	Cost   float64 `json:"cost"`  // seconds that the newest sample took on this rank

	Values []byte `json:"-"` // of the rows, little-endian
}

// Encode returns the message: the length of the head, u32, the head, and the values.
func (r *Rows) Encode() []byte {
	head, err := json.Marshal(r)
	if err != nil {
		panic("view: " + err.Error()) // a cost is a time
	}
	b := make([]byte, 0, 4+len(head)+len(r.Values))
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(head))), head...)
	return append(b, r.Values...)
}

// MaxHead bounds the size of an encoded head, but for 8 bytes a row.
const MaxHead = 512

// ParseRows decodes a message with rows of a mesh of nx x ny points.
func ParseRows(b []byte, nx, ny int) (Rows, error) {
	var r Rows
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return r, errors.New("rows: truncated")
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	if err := json.Unmarshal(b[4:n], &r); err != nil {
		return r, fmt.Errorf("rows: %w", err)
	}
	r.Values = b[n:]
	if w, err := r.Window.In(nx, ny); err != nil || w != r.Window {
		return r, fmt.Errorf("rows of window %+v", r.Window)
	}
	if d := solver.DType(r.Bytes); d != solver.Float32 && d != solver.Float64 ||
		len(r.At) > r.Rows || len(r.Values) != len(r.At)*r.Cols*r.Bytes {
		return r, fmt.Errorf("rows: %d bytes of values of %d bytes for %d x %d", len(r.Values), r.Bytes, len(r.At),
			r.Cols)
	}
	for _, at := range r.At {
		if at < 0 || at >= r.Rows {
			return r, fmt.Errorf("rows: row %d of %d", at, r.Rows)
		}
	}
	if !(r.Cost >= 0) || r.Sweeps < 0 {
		return r, errors.New("rows: a number is negative")
	}
	return r, nil
}

// gathering puts the frame of a window together from the rows of all ranks.
type gathering struct {
	sample uint64
	frame  *Frame
	have   []bool // by row
	left   int    // rows that are missing
}

// add adds rows of the same window. It returns the frame when it is complete. Rows of an older sample are dropped, and
// those of a newer one begin a new frame.
func (g *gathering) add(r Rows) *Frame {
	if r.Sample < g.sample {
		return nil
	}
	d := solver.DType(r.Bytes)
	if r.Sample > g.sample || g.frame == nil {
		*g = gathering{sample: r.Sample, have: make([]bool, r.Rows), left: r.Rows,
			frame: &Frame{Window: r.Window, Sweeps: r.Sweeps, DType: d, Values: make([]float64, r.Cols*r.Rows)}}
	}
	if g.left == 0 || d != g.frame.DType || r.Sweeps != g.frame.Sweeps {
		return nil
	}
	for i, at := range r.At {
		if g.have[at] {
			continue // a duplicate
		}
		g.have[at] = true
		g.left--
		row := r.Cols * r.Bytes
		d.Decode(g.frame.Values[at*r.Cols:(at+1)*r.Cols], r.Values[i*row:(i+1)*row])
	}
	if g.left > 0 {
		return nil
	}
	return g.frame
}
