package output

import (
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// fitColumns aligns the tab-separated cells of a table. It drops the columns named in drop, in that order, until every
// line fits in width columns of a terminal. A width of 0 drops none.
func fitColumns(table string, width int, drop []string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	rows := make([][]string, len(lines))
	for i, line := range lines {
		rows[i] = strings.Split(line, "\t")
	}
	for {
		text := align(rows)
		if width == 0 || widest(text) <= width || len(drop) == 0 {
			return text
		}
		for c, name := range rows[0] {
			if strings.TrimSpace(name) == drop[0] {
				for i, row := range rows {
					rows[i] = append(row[:c:c], row[c+1:]...)
				}
				break
			}
		}
		drop = drop[1:]
	}
}

func align(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = t.Write([]byte(strings.Join(row, "\t") + "\n")) // a write to memory does not fail
	}
	_ = t.Flush()
	return b.String()
}

// widest returns the number of characters in the longest line.
func widest(text string) (columns int) {
	for line := range strings.Lines(text) {
		columns = max(columns, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return columns
}
