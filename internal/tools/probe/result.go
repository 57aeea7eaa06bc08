package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// Figure is one number of a result, named by words with dots between, as in copies.gpu0.to_device.pinned.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // B/s, s, GLUP/s or a plain number: ""
}

// Report is what a part found on one node, as it travels from there to whoever prints it.
type Report struct {
	Part     string          `json:"part"`
	Host     string          `json:"host"`
	Node     int             `json:"node"`
	Seconds  float64         `json:"seconds"`            // that the part took
	Data     json.RawMessage `json:"data,omitempty"`     // tables, but for devices
	Text     string          `json:"text,omitempty"`     // the same for a terminal, in lines of at most 100 columns
	Findings []string        `json:"findings,omitempty"` // what is slow or missing, one sentence each
	Figures  []Figure        `json:"figures,omitempty"`  // that bounds can be given for
	NotRun   string          `json:"not_run,omitempty"`  // why the part, or some of it, did not run here; "" if all did
	Fault    string          `json:"fault,omitempty"`
}

// Result is a Report in the making. A part returns what it has together with an error.
type Result struct {
	Report
	Tables  []Table // for JSON
	Details any     // for JSON in place of Tables
}

// Event is what the ranks publish for the launcher: that a part begins, or what it found on one node.
type Event struct {
	Begins string  `json:"begins,omitempty"` // name of the part
	Report *Report `json:"report,omitempty"`
}

// add adds a figure, show a table if it has rows, say a line of text, find a finding, and skip what did not run.
func (r *Result) add(value float64, unit, format string, args ...any) {
	r.Figures = append(r.Figures, Figure{Name: fmt.Sprintf(format, args...), Value: value, Unit: unit})
}

func (r *Result) show(t Table) {
	if len(t.Rows) > 0 {
		r.Tables = append(r.Tables, t)
		r.Text += t.text()
	}
}

func (r *Result) say(format string, args ...any) {
	r.Text += "  " + fmt.Sprintf(format, args...) + "\n"
}

func (r *Result) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

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
	for _, i := range slices.Sorted(maps.Keys(values)) {
		if typical := median(slices.Collect(maps.Values(values))); values[i] < fair*typical {
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

// Table is what a part found, in rows.
type Table struct {
	Title   string   `json:"title,omitempty"`
	Columns []Column `json:"columns"`
	Rows    [][]any  `json:"rows"` // numbers in the unit of their column, words, or null
}

// Column says what the cells below it are.
type Column struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"` // B/s, GLUP/s, s, B, a ratio: x, or a share of 1: %
}

// newTable returns a table of columns such as "size:B|rate:B/s": names, and units if they have some.
func newTable(title, columns string) Table {
	t := Table{Title: title}
	for c := range strings.SplitSeq(columns, "|") {
		name, unit, _ := strings.Cut(c, ":")
		t.Columns = append(t.Columns, Column{name, unit})
	}
	return t
}

// row adds a row. A number that is 0 or not finite is unknown.
func (t *Table) row(cells ...any) {
	for i, cell := range cells {
		if v, ok := cell.(float64); ok && (v == 0 || v-v != 0) {
			cells[i] = nil
		}
	}
	t.Rows = append(t.Rows, cells)
}

// text returns the table for a terminal, without columns that are empty.
func (t Table) text() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("  " + t.Title + "\n")
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(cell func(i int) string) {
		var cells []string
		for i := range t.Columns {
			if slices.ContainsFunc(t.Rows, func(row []any) bool { return row[i] != nil }) {
				cells = append(cells, cell(i))
			}
		}
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
	}
	line(func(i int) string { return t.Columns[i].Name })
	for _, row := range t.Rows {
		line(func(i int) string { return inUnit(row[i], t.Columns[i].Unit) })
	}
	_ = w.Flush() // a strings.Builder takes every write
	return b.String()
}

// inUnit formats a cell.
func inUnit(cell any, unit string) string {
	v, ok := cell.(float64)
	if cell == nil {
		return "-"
	} else if !ok {
		return fmt.Sprint(cell)
	}
	switch unit {
	case "B/s":
		return rate(v)
	case "GLUP/s":
		return digits(v) + " GLUP/s"
	case "s":
		return seconds(v)
	case "B":
		return size(int64(v))
	case "%":
		return fmt.Sprintf("%.0f%%", 100*v)
	case "x":
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// rate formats bytes a second in GB/s, or MB/s, with three digits.
func rate(bytesPerSecond float64) string {
	if bytesPerSecond > 0 && bytesPerSecond < 1e9 {
		return digits(bytesPerSecond/1e6) + " MB/s"
	}
	return digits(bytesPerSecond/1e9) + " GB/s"
}

// digits formats a positive number with three digits, and at least all before the point.
func digits(v float64) string {
	places := 0
	if v > 0 && v < 100 {
		places = min(4, 2-int(math.Floor(math.Log10(v))))
	}
	return fmt.Sprintf("%.*f", places, v)
}

// seconds formats a duration given in seconds, with three digits.
func seconds(s float64) string {
	d := time.Duration(s * 1e9)
	unit := time.Nanosecond
	for unit < d/1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// size formats a number of bytes, as in 64 KiB.
func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }
