package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

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
	switch {
	case cell == nil:
		return "-"
	case !ok:
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
