package output

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/compute/results"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// Summary writes a summary of the run as text: what was solved, how well, and where the files are. With long it has all
// else that is known of the run as well, and always where w is no terminal.
func Summary(w io.Writer, r Report, long bool) error {
	look := style.Of(w)
	text, err := summary(r, look, long || look == (style.Style{}))
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func summary(r Report, look style.Style, long bool) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nJacobi %s: %s\n\n", r.Version, r.Title())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(key, text string) { fmt.Fprintf(t, "  %s\t%s\n", key, text) }
	lines := r.answer()
	if long {
		lines = r.Lines()
	}
	for _, line := range lines {
		row(line[0], line[1])
	}
	key, names := "Files", r.inDir()
	if !long && len(names) > 0 {
		names = []string{strings.Join(names, ", ")}
	}
	for _, name := range names {
		row(key, filepath.Join(r.Dir, name))
		key = ""
	}
	key = "NOT WRITTEN"
	for _, f := range r.Failed {
		row(key, filepath.Join(r.Dir, f.Name)+": "+f.Error)
		key = ""
	}
	key = "MISSING"
	for _, f := range r.Missing {
		row(key, f.Name+": "+f.Error)
		key = ""
	}
	if err := t.Flush(); err != nil {
		return "", err
	}
	if long {
		rankTable(&b, r.Ranks, look.Width)
		linkTable(&b, r, look.Width)
	} else {
		fmt.Fprint(&b, "\n  --long also shows ranks, devices, speed, memory and hashes.\n")
	}
	strangers(&b, r)
	if remedy := r.Remedy(); remedy != "" {
		fmt.Fprintf(&b, "\n  %s\n", remedy)
	}
	return styled(show.Lines(b.String()), r, look), nil
}

// inDir returns the names of the files that the run wrote to output.dir, but for the numbered fields of a series.
func (r Report) inDir() (names []string) {
	for _, f := range r.Files {
		if f.Name != configs.Stdout {
			names = append(names, f.Name)
		}
	}
	if s := r.Series; s != nil && s.Index != "" {
		names = append(names, s.Index)
	}
	if p := r.Probes; p != nil && p.Samples > 0 {
		names = append(names, configs.ProbesFile)
	}
	return names
}

// Title names the run.
func (r Report) Title() string {
	if r.Name != "" {
		return r.Name + " (" + r.Problem + ")"
	}
	return r.Problem
}

// Lines describes the run and its result as a name and a text for each line of the summary, without the files: what
// matters most first.
func (r Report) Lines() [][2]string { return append(r.answer(), r.details()...) }

// answer describes what was solved, how well, what came out and how long it took.
func (r Report) answer() (lines [][2]string) {
	row := func(key, format string, args ...any) {
		lines = append(lines, [2]string{key, fmt.Sprintf(format, args...)})
	}
	row("Mesh", "%d x %d, %s", r.Mesh.NX, r.Mesh.NY, r.Mesh.DType)
	if r.Setup != nil {
		lines = append(lines, r.Setup.Lines()...)
	}
	if r.MethodReason != "" {
		row("Method", "%s", configs.Solver{Method: r.Method, Why: r.MethodReason}.MethodText())
	}
	row("Result", "%s", result(r))
	if r.Accuracy != nil {
		row("Error", "%s", accuracy(r))
	}
	if r.Residual != nil {
		row("Residual", "%s", r.Residual)
	}
	if r.Results != nil {
		lines = append(lines, r.Results.Lines()...)
	}
	cycles := ""
	if r.Aggregates > 0 {
		cycles = fmt.Sprintf(", with aggregates after the first %d", r.Aggregates)
	}
	row(r.steps(), "%d of at most %d%s", r.Sweeps, r.MaxIterations, cycles)
	row("Time", "%.4f s in the %ss (set-up %.4f s, output %.4f s)", r.Times.Sweeps, r.step(), r.Times.Setup,
		r.Times.Output)
	if r.ResumedAfter > 0 {
		row("Resumed", "after %s; times and speed are of the others", plural(r.ResumedAfter, r.step()))
	}
	if r.Idle != "" {
		row("Idle", "%s", r.Idle)
	}
	if c := r.Checkpoints; c != nil {
		row("Checkpoints", "%s", checkpoints(c, r.step()))
	}
	if s := r.Series; s != nil {
		row("Series", "%s", series(s, r.step()))
	}
	key := "Probes"
	for _, text := range r.probes() {
		row(key, "%s", text)
		key = ""
	}
	return lines
}

// details describes the norm, the ranks and their machines.
func (r Report) details() (lines [][2]string) {
	row := func(key, format string, args ...any) {
		lines = append(lines, [2]string{key, fmt.Sprintf(format, args...)})
	}
	row("L2 norm", "of the update: %s", norm(r))
	why := ""
	if r.DepthReason != "" {
		why = " (" + r.DepthReason + ")"
	}
	nodes := map[string]bool{}
	for _, k := range r.Ranks {
		nodes[k.Node] = true
	}
	row("Ranks", "%d on %s, halo depth %d%s", len(r.Ranks), plural(len(nodes), "node"), r.Depth, why)
	if r.Balance != "" {
		row("Stripes", "%s", r.Balance)
	}
	row("Devices", "%s", tally(r.Ranks, func(k RankReport) []string { return []string{k.Device} }))
	row("Transports", "%s", cmp.Or(tally(r.Ranks, transports), "none: no rank has a neighbour"))
	if r.Times.Meshes >= 0.001 {
		row("Meshes", "the run waited %.4f s for the solutions on coarser meshes", r.Times.Meshes)
	}
	if r.Times.Regions > 0 {
		row("Solutions", "those for single regions took %.4f s", r.Times.Regions)
	}
	if r.Times.Samples > 0 {
		row("Samples", "the sweeps waited %.4f s for them", r.Times.Samples)
	}
	row("Speed", "%.3f GLUP/s", r.GLUPS)
	row("Memory", "%s", memoryOf(r.Ranks))
	if r.FieldHash != "" {
		row("Field SHA-256", "%s", r.FieldHash)
	}
	if far := tally(r.Ranks, func(k RankReport) []string { return sent(k) }); far != "" {
		row("Rows sent", "%s", far)
	}
	return lines
}

// method returns what the method of the run can do.
func (r Report) method() methods.Method { return methods.Of(r.Method) }

// step returns what Sweeps counts.
func (r Report) step() string { return r.method().Unit }

// steps returns step as a heading.
func (r Report) steps() string { return strings.ToUpper(r.step()[:1]) + r.step()[1:] + "s" }

func checkpoints(c *CheckpointReport, step string) string {
	text := fmt.Sprintf("%d in %s", c.Written, c.Place)
	if c.Written > 0 {
		text += fmt.Sprintf(", the last after %s (%s, written in %.2f s)", plural(c.Sweeps, step), bytesOf(c.Bytes),
			c.Write)
	}
	if c.Failed > 0 {
		text += fmt.Sprintf("; %d FAILED", c.Failed)
	}
	return text + fmt.Sprintf("; the sweeps waited %.4f s for copies", c.Copies)
}

func series(s *SeriesReport, step string) string {
	text := fmt.Sprintf("%s %s, every %s", plural(s.Written, "field"), s.Files, plural(s.Every, step))
	if s.Failed > 0 {
		text += fmt.Sprintf("; %d FAILED: %s", s.Failed, s.Error)
	}
	return text
}

// maxProbes is the number of probes that the summary lists where there are more (see results.Shown), and the largest
// number of values of one of them.
const maxProbes = 8

// probes describes the values of the probes at the end, and those that were recorded, in a text for each line.
func (r Report) probes() (lines []string) {
	names := slices.Sorted(maps.Keys(r.Probed))
	shown := results.Shown(len(names), maxProbes)
	for _, name := range names[:shown] {
		lines = append(lines, name+" "+valuesText(r.Probed[name], r.ProbeErrors[name]))
	}
	if more := len(names) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, which are in the report", more))
	}
	p := r.Probes
	if p == nil {
		return lines
	}
	text := fmt.Sprintf("%s of %s in %s", plural(p.Samples, "sample"), plural(p.Points, "point"),
		filepath.Join(r.Dir, configs.ProbesFile))
	if p.Every > 0 {
		text += ", every " + plural(p.Every, r.step())
	}
	if p.Error != "" {
		text += "; the last FAILED: " + p.Error
	}
	return append(lines, text)
}

// valuesText returns the values of a probe, with what the mesh leaves of errors, or, where they are many, their
// extremes.
func valuesText(values, errors []*float64) string {
	var texts []string
	least, most := math.Inf(1), math.Inf(-1)
	for i, p := range values {
		v, within := math.NaN(), ""
		if p != nil {
			v = *p
		}
		if i < len(errors) {
			within = results.Within(p, errors[i])
		}
		texts, least, most = append(texts, fmt.Sprintf("%.10g%s", v, within)), min(least, v), max(most, v)
	}
	if len(texts) > maxProbes {
		return fmt.Sprintf("%s: min %.10g, max %.10g", plural(len(texts), "point"), least, most)
	}
	return strings.Join(texts, ", ")
}

func memoryOf(ranks []RankReport) string {
	var fields, resident int64
	for _, k := range ranks {
		fields, resident = max(fields, k.MemoryBytes), max(resident, k.RSSBytes)
	}
	return fmt.Sprintf("%s per rank for fields and halos, %s resident (largest of all ranks)", bytesOf(fields),
		bytesOf(resident))
}

func bytesOf(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// sent returns where a rank sent its rows, if they left its node.
func sent(k RankReport) []string {
	if strings.HasPrefix(k.Output, WroteNATS) {
		return []string{k.Output}
	}
	return nil
}

// transports returns the transport at the bottom of the rank, so that each pair of neighbours counts once.
func transports(k RankReport) []string {
	if l, ok := k.Transports[solver.Bottom.String()]; ok {
		return []string{l.Transport}
	}
	return nil
}

// tally counts the names of all ranks: "6 x shm, 2 x nats", the most frequent first.
func tally(ranks []RankReport, names func(RankReport) []string) string {
	count := map[string]int{}
	for _, k := range ranks {
		for _, n := range names(k) {
			count[n]++
		}
	}
	var keys []string
	for n := range count {
		keys = append(keys, n)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, n := range keys {
		keys[i] = fmt.Sprintf("%d x %s", count[n], n)
	}
	return strings.Join(keys, ", ")
}

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
