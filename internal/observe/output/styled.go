package output

import (
	"strings"
	"unicode/utf8"

	"jacobi/configs"
	"jacobi/internal/base/style"
	"jacobi/solver"
)

// keyColumns returns the column at which the value begins in a "  key  value" line of a summary, or 0 for other lines.
func keyColumns(line string) int {
	text := strings.TrimLeft(line, " ")
	gap := strings.Index(text, "  ")
	if !strings.HasPrefix(line, "  ") || gap < 0 {
		return 0
	}
	return len(line) - len(strings.TrimLeft(text[gap:], " "))
}

// styled wraps the rows of a summary and highlights the title, the result and the header of the table.
func styled(text string, r Report, s style.Style) string {
	if s == (style.Style{}) {
		return text
	}
	colour := map[solver.StopReason]func(string) string{
		solver.Converged: s.Green, solver.Stalled: s.Yellow,
		solver.Stagnated: s.Yellow, solver.MaxIterations: s.Yellow, solver.Interrupted: s.Red,
	}[r.StopReason]
	if r.Verdict == configs.Met || r.Verdict == configs.Done && r.withoutTolerance() {
		colour = s.Green
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		n := keyColumns(line)
		if n == 0 {
			n = len(line) - len(strings.TrimLeft(line, " "))
		}
		folded := line
		if s.Width > 0 && utf8.RuneCountInString(line) > s.Width && n < s.Width/2 {
			folded = style.Paragraph(line[:n], line[n:], n, s.Width)
			if word := line[n:]; !strings.Contains(word, " ") && len("    "+word) <= s.Width {
				// A single word stays on one line, so that it can be copied.
				folded = strings.TrimRight(line[:n], " ") + "\n    " + word
			}
		}
		switch {
		case strings.HasPrefix(line, "Jacobi "), strings.HasPrefix(line, "  Rank  "):
			b.WriteString(s.Bold(line))
		case strings.HasPrefix(line, "  Result ") && colour != nil:
			b.WriteString(folded[:n] + colour(folded[n:]))
		case strings.HasPrefix(line, "  NOT WRITTEN "):
			b.WriteString(s.Red(folded))
		default:
			b.WriteString(folded)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Result says in one line how the run ended.
func Result(r Report) string {
	text := result(r) + "; norm " + norm(r)
	if remedy := r.Remedy(); remedy != "" {
		text += ". " + remedy
	}
	return text
}
