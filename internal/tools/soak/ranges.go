package soak

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// Range is rows [Lo, Hi).
type Range struct {
	Lo int `json:"lo"`
	Hi int `json:"hi"`
}

// maxRanges bounds the ranges of rows that a rank reports, so that a message stays small however many rows differ.
const maxRanges = 32

// Collect adds row, which is above all rows added before. Beyond maxRanges it extends the last range over rows that
// agree.
func Collect(ranges []Range, row int) []Range {
	if n := len(ranges); n > 0 && (ranges[n-1].Hi == row || n == maxRanges) {
		ranges[n-1].Hi = row + 1
		return ranges
	}
	return append(ranges, Range{row, row + 1})
}

// FormatRows formats ranges as "row 7" or "rows 3-5, 9".
func FormatRows(ranges []Range) string {
	var parts []string
	rows := 0
	for _, r := range ranges {
		rows += r.Hi - r.Lo
		if r.Hi-r.Lo == 1 {
			parts = append(parts, fmt.Sprint(r.Lo))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.Lo, r.Hi-1))
		}
	}
	return english.PluralWord(rows, "row", "") + " " + strings.Join(parts, ", ")
}
