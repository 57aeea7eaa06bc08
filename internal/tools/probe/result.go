package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Result is what a part found on one node. A part returns what it has together with an error.
type Result struct {
	Tables   []Table  // for JSON and pictures
	Data     any      // for JSON in place of Tables
	Text     string   // the same for a terminal, in lines of at most 100 columns
	Findings []string // what is slow or missing, one sentence each
	Figures  []Figure // that bounds can be given for
	NotRun   string   // why the part, or some of it, did not run here; "" if all of it did
}

// Figure is one number of a result, named by words with dots between, as in copies.gpu0.to_device.pinned.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // B/s, s, GLUP/s or a plain number: ""
}

// Report is a Result with its node, as it travels from there to whoever prints it.
type Report struct {
	Part     string          `json:"part"`
	Host     string          `json:"host"`
	Node     int             `json:"node"`
	Seconds  float64         `json:"seconds"`        // that the part took
	Data     json.RawMessage `json:"data,omitempty"` // tables, but for devices
	Text     string          `json:"text,omitempty"`
	Findings []string        `json:"findings,omitempty"`
	Figures  []Figure        `json:"figures,omitempty"`
	NotRun   string          `json:"not_run,omitempty"`
	Fault    string          `json:"fault,omitempty"`
}

// Event is what the ranks publish for the launcher: that a part begins, or what it found on one node.
type Event struct {
	Begins string  `json:"begins,omitempty"` // name of the part
	Report *Report `json:"report,omitempty"`
}

// add adds a figure whose name is formatted.
func (r *Result) add(value float64, unit, format string, args ...any) {
	r.Figures = append(r.Figures, Figure{Name: fmt.Sprintf(format, args...), Value: value, Unit: unit})
}

// show adds a table that has rows.
func (r *Result) show(t Table) {
	if len(t.Rows) > 0 {
		r.Tables = append(r.Tables, t)
		r.Text += t.text()
	}
}

// say adds a line to the text.
func (r *Result) say(format string, args ...any) {
	r.Text += "  " + fmt.Sprintf(format, args...) + "\n"
}

// find adds a finding.
func (r *Result) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// skip says that some of the part did not run.
func (r *Result) skip(format string, args ...any) {
	if r.NotRun != "" {
		r.NotRun += "; "
	}
	r.NotRun += fmt.Sprintf(format, args...)
}

// fair is the least part of the median of its peers that a device reaches without being called slow.
const fair = 0.9

// compare adds a finding for each GPU whose value, in the given unit, is well below the median of all.
func (r *Result) compare(what, unit string, values map[int]float64) {
	if len(values) < 2 {
		return
	}
	typical := median(slices.Collect(maps.Values(values)))
	for _, i := range slices.Sorted(maps.Keys(values)) {
		if values[i] < fair*typical {
			r.find("GPU %d: %s reach %s; the median of the GPUs is %s.", i, what, inUnit(values[i], unit),
				inUnit(typical, unit))
		}
	}
}

// median returns the upper median of values, at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
