package output

import (
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// fitColumns aligns lines whose cells are separated by tabs. Columns are left out, in the order of less, until a line
// has at most width columns of a terminal; all stay if width is 0.
func fitColumns(table string, width int, less []string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	rows := make([][]string, len(lines))
	for i, line := range lines {
		rows[i] = strings.Split(line, "\t")
	}
	for {
		text := align(rows)
		if width == 0 || widest(text) <= width || len(less) == 0 {
			return text
		}
		for c, name := range rows[0] {
			if strings.TrimSpace(name) == less[0] {
				for i, row := range rows {
					rows[i] = append(row[:c:c], row[c+1:]...)
				}
				break
			}
		}
		less = less[1:]
	}
}

func align(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = t.Write([]byte(strings.Join(row, "\t") + "\n")) // to memory
	}
	_ = t.Flush()
	return b.String()
}

func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}
