package view

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"jacobi/solver"
)

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

// HeadBytes bounds the size of an encoded head for the given number of rows.
func HeadBytes(rows int) int { return 512 + 8*rows }

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
