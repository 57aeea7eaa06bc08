package probe

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// text returns the value with its unit.
func (f Figure) text() string {
	switch f.Unit {
	case "B/s":
		return rate(f.Value)
	case "s":
		return seconds(f.Value)
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", f.Value, f.Unit))
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

// size formats a number of bytes, a power of two, as in 64 KiB.
func size(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }

// table aligns rows of cells separated by tabs, each ended by a line end. It indents them by two columns.
func table(rows string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for line := range strings.Lines(rows) {
		fmt.Fprint(w, "  "+line)
	}
	_ = w.Flush() // a strings.Builder takes every write
	return b.String()
}
