// Package view serves a page that shows a run: the field as a heat map, the norms, the ranks, warnings and the end.
//
//	Server   the page and its assets, and a WebSocket for each open page   server.go, page.go, page/
//	Board    the newest state of everything but the field                  board.go
//	Source   frames: values of the field at points of a window             frame.go
//	Files    the Board and Source of a finished run                        files.go
//
// A page asks for a frame of the window that it shows, and gets the next one when it has drawn the last. Whatever a
// page does or does not read, it holds up nobody else: the Board keeps the newest state only, and a page has one
// pending frame at most.
package view

import (
	"bytes"
	"embed"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"jacobi/internal/observe/output"
)

//go:embed page
var files embed.FS

// index serves the page. Its assets carry the token as the page does. The page is no template: a program with package
// text/template keeps all exported methods of all its types.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	page, err := fs.ReadFile(files, "page/index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	token := html.EscapeString(url.QueryEscape(s.token))
	_, _ = w.Write(bytes.ReplaceAll(page, []byte("TOKEN"), []byte(token))) // to a client that may be gone
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(files, "page/"+r.PathValue("asset"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, r.PathValue("asset"), time.Time{}, bytes.NewReader(data))
}

// shades serves the colours of the two kinds of bars, 3 bytes each: first those of a bar that does not diverge.
func shades(w http.ResponseWriter, _ *http.Request) {
	var b []byte
	for _, diverging := range []bool{false, true} {
		list, err := output.Shades(diverging)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, c := range list {
			b = append(b, c.R, c.G, c.B)
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b) // to a client that may be gone
}

// The topics of a Board.
const (
	TopicRun      = "run"      // a Run
	TopicProgress = "progress" // a Progress
	TopicHistory  = "history"  // a History
	TopicRanks    = "ranks"    // a []Rank
	TopicWarnings = "warnings" // a []string
)

// Run describes a run. It does not change while the run goes on.
type Run struct {
	Title   string `json:"title"`
	ID      string `json:"id"`
	Version string `json:"version"`
	NX      int    `json:"nx"`
	NY      int    `json:"ny"`
	DType   string `json:"dtype"`
	// HX and HY are the distances between neighbouring points; 0 if they are not known.
	HX        float64     `json:"hx"`
	HY        float64     `json:"hy"`
	Method    string      `json:"method"`
	Step      string      `json:"step"`      // what an iteration is: "sweep" or "cycle"
	Tolerance float64     `json:"tolerance"` // of the norm, also a relative one; 0 if there is none
	Max       int         `json:"max"`       // iterations at most
	Facts     [][2]string `json:"facts"`     // names and texts
	// Outlines are those of problem.Outlines: x and y of the ends of lines, in points of the mesh.
	Outlines [][4]float64 `json:"outlines,omitempty"`
	NoField  string       `json:"no_field"` // why no frames can be had; "" if they can
}

// The values of Progress.State.
const (
	Starting = "starting"
	Running  = "running"
	Ended    = "ended"  // with results
	Failed   = "failed" // without
)

// Progress is how far a run is.
type Progress struct {
	State  string  `json:"state"`
	Text   string  `json:"text"`   // the state in words
	Good   bool    `json:"good"`   // of an ended run: the tolerance is met
	Sweeps int     `json:"sweeps"` // iterations done
	Share  float64 `json:"share"`  // of the whole run, 0 to 1; 0 if it is not known
	Norm   *Float  `json:"norm"`   // the newest one; nil before it
	GLUPs  Float   `json:"glups"`
	// End is the estimated number of iterations in all, and Left the estimated seconds until then; 0 if unknown.
	End     int         `json:"end"`
	Left    float64     `json:"left"`
	Elapsed float64     `json:"elapsed"` // seconds of iterations
	Results [][2]string `json:"results"` // of an ended run: names and texts
}

// Rank is a line of the table of ranks.
type Rank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"`
	Device string `json:"device"`
	Stripe [2]int `json:"stripe"` // rows [lo, hi)
	// The others are nil where they are not known. Waits and computation are in seconds, temperature in degrees
	// Celsius.
	Sweeps      *int     `json:"sweeps"`
	GLUPs       *float64 `json:"glups"`
	Compute     *float64 `json:"compute"`
	HaloWait    *float64 `json:"halo_wait"`
	NormWait    *float64 `json:"norm_wait"`
	Bytes       *uint64  `json:"bytes"` // of rows, both ways
	Memory      *int64   `json:"memory"`
	Temperature *float64 `json:"temperature"`
}

// History has the norms of a run, thinned out to a few thousand.
type History struct {
	Points []Point `json:"points"`
}

// bar returns the colour bar of f.
func (f *Frame) bar(scale string) output.Bar {
	cells := make([][]float64, f.Rows)
	for y := range cells {
		cells[y] = f.Values[y*f.Cols : (y+1)*f.Cols]
	}
	return output.NewBar(scale, cells, f.DType, 6)
}
