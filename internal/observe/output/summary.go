package output

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
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
	row(r.steps(), "%d of at most %d", r.Sweeps, r.MaxIterations)
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
	if p := r.Probes; p != nil {
		row("Probes", "%s", probes(r))
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
	row("Ranks", "%d on %s, halo depth %d%s", len(r.Ranks), plural(len(distinct(r.Ranks, node)), "node"), r.Depth, why)
	if r.Balance != "" {
		row("Stripes", "%s", r.Balance)
	}
	row("Devices", "%s", tally(r.Ranks, func(k RankReport) []string { return []string{k.Device} }))
	row("Transports", "%s", cmp.Or(tally(r.Ranks, transports), "none: no rank has a neighbour"))
	if r.Times.Samples > 0 {
		row("Samples", "the sweeps waited %.4f s for them", r.Times.Samples)
	}
	row("Speed", "%.3f GLUP/s", r.GLUPS)
	row("Memory", "%s", memoryOf(r.Ranks))
	if r.FieldSHA256 != "" {
		row("Field SHA-256", "%s", r.FieldSHA256)
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

func norm(r Report) string {
	switch {
	case r.Norm == nil && r.Sweeps > 0:
		return fmt.Sprintf("none, the first was due after %d sweeps (solver.norm_every)", r.NormEvery)
	case r.Norm == nil:
		return "none, no sweep was done"
	case r.NormEvery > 1 && r.NormSweep != nil:
		return fmt.Sprintf("%.10g after sweep %d, the last that has one (solver.norm_every %d, %s)", *r.Norm,
			*r.NormSweep, r.NormEvery, tolerances(r))
	}
	if r.method().Delay == 0 { // the norm is that of the field
		return fmt.Sprintf("%.10g after %s (%s)", *r.Norm, plural(r.Sweeps, r.step()), tolerances(r))
	}
	return fmt.Sprintf("%.10g after sweep %d (%s)", *r.Norm, r.Sweeps-1, tolerances(r))
}

// String says what the residual is.
func (r ResidualReport) String() string {
	if r.Relative == nil {
		return fmt.Sprintf("|b - Au| = %.4g, as in PETSc and hypre", r.Norm)
	}
	return fmt.Sprintf("|b - Au|/|b| = %.4g, as in PETSc and hypre", *r.Relative)
}

// tolerances names the tolerances in force.
func tolerances(r Report) string {
	switch {
	case r.RelativeTolerance == 0:
		return fmt.Sprintf("tolerance %g", r.Tolerance)
	case r.Tolerance == 0:
		return fmt.Sprintf("relative tolerance %g", r.RelativeTolerance)
	}
	return fmt.Sprintf("tolerance %g, relative %g", r.Tolerance, r.RelativeTolerance)
}

// withoutTolerance reports whether the run had no tolerance to meet.
func (r Report) withoutTolerance() bool { return r.Tolerance == 0 && r.RelativeTolerance == 0 }

// exact is the result of a run whose first norm is 0.
const exact = "exact: the field solves the equations at every point as it is"

func result(r Report) string {
	if r.method().Floor && r.Decisive != nil {
		switch {
		case r.StopReason == solver.Converged && r.Decisive.Norm == 0 && r.Sweeps == 0:
			return exact
		case r.StopReason == solver.Converged:
			return "converged: the norm met the tolerance"
		case r.StopReason == solver.Stagnated:
			return "not converged: the norm no longer falls, far above what rounding leaves"
		}
		if r.Verdict == configs.Met {
			return "converged to the floor of rounding, which is above the default tolerance"
		}
		return "stalled: only rounding is left; the tolerance was not met"
	}
	switch d := r.Decisive; r.StopReason {
	case solver.Converged:
		if d.Sweep == 0 && d.Norm == 0 {
			return exact
		}
		text := fmt.Sprintf("converged: the norm of sweep %d, %.10g, met the tolerance", d.Sweep, d.Norm)
		if a := r.Accuracy; a != nil && a.Rounding {
			text += fmt.Sprintf("; rounding in %s alone leaves such a norm", r.Mesh.DType)
		}
		return text
	case solver.Stalled:
		if d.Norm == 0 {
			return fmt.Sprintf("stalled: by sweep %d no change was left that a norm shows (%s)", d.Sweep, r.Mesh.DType)
		}
		return fmt.Sprintf("stalled: by sweep %d only rounding (%s) moved the field, back and forth; "+
			"the tolerance was not met", d.Sweep, r.Mesh.DType)
	case solver.MaxIterations:
		if r.withoutTolerance() {
			return "done: " + plural(r.Sweeps, r.step()) + ", as asked"
		}
		return "not converged: stopped at max_iterations"
	case solver.Interrupted:
		return fmt.Sprintf("INTERRUPTED after %s: the files hold the field at that point", plural(r.Sweeps, r.step()))
	}
	return string(r.StopReason)
}

// far is the part of the range of the field above which an error counts as large.
const far = 0.1

// accuracy says how far the field is from the solution of the discrete equations.
func accuracy(r Report) string {
	a := r.Accuracy
	if a.Error == nil {
		return "unknown: " + a.Why
	}
	text := fmt.Sprintf("about %.0e from the solution of the discrete equations, at the worst point", *a.Error)
	switch {
	case *a.Error == 0:
		return "none: another sweep would change nothing"
	case a.ByRounding:
		return fmt.Sprintf("up to %s: rounding in %s leaves that", text, r.Mesh.DType)
	case a.Rounding, r.method().Floor && r.StopReason == solver.Stalled:
		text += fmt.Sprintf("; rounding in %s leaves that", r.Mesh.DType)
	case r.Results != nil && *a.Error > far*(r.Results.Max.Value-r.Results.Min.Value):
		text += ": still far"
	case a.Uncertain:
		text += ", and perhaps far more, as the contrast of coefficients is large"
	}
	return text
}

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

func probes(r Report) string {
	p := r.Probes
	text := fmt.Sprintf("%s of %s in %s, every %s", plural(p.Samples, "sample"), plural(p.Points, "point"),
		filepath.Join(r.Dir, configs.ProbesFile), plural(p.Every, r.step()))
	if p.Error != "" {
		text += "; the last FAILED: " + p.Error
	}
	return text
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

func node(k RankReport) string { return k.Node }

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

// distinct returns the distinct keys of ranks, sorted.
func distinct(ranks []RankReport, key func(RankReport) string) []string {
	var keys []string
	for _, k := range ranks {
		keys = append(keys, key(k))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
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
