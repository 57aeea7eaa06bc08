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
	"jacobi/internal/problem"
	"jacobi/internal/show"
	"jacobi/internal/style"
	"jacobi/solver"
)

// tableRanks is the largest number of ranks that the summary lists.
const tableRanks = 16

// Summary writes a summary of the run as text.
func Summary(w io.Writer, r Report) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\nJacobi %s: %s\n\n", r.Version, r.Title())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(key, text string) { fmt.Fprintf(t, "  %s\t%s\n", key, text) }
	for _, line := range r.Lines() {
		row(line[0], line[1])
	}
	key := "Files"
	for _, name := range r.inDir() {
		row(key, filepath.Join(r.Dir, name))
		key = ""
	}
	key = "NOT WRITTEN"
	for _, f := range r.Failed {
		row(key, filepath.Join(r.Dir, f.Name)+": "+f.Error)
		key = ""
	}
	if err := t.Flush(); err != nil {
		return err
	}
	look := style.Of(w)
	rankTable(&b, r.Ranks, look.Width)
	linkTable(&b, r, look.Width)
	strangers(&b, r)
	_, err := io.WriteString(w, styled(show.Lines(b.String()), r, look))
	return err
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

// Lines describes the run and its result as a name and a text for each line of the summary, without the files.
func (r Report) Lines() (lines [][2]string) {
	row := func(key, format string, args ...any) {
		lines = append(lines, [2]string{key, fmt.Sprintf(format, args...)})
	}
	row("Mesh", "%d x %d, %s", r.Mesh.NX, r.Mesh.NY, r.Mesh.DType)
	if r.Setup != nil {
		lines = append(lines, r.Setup.Lines()...)
	}
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
	if r.MethodReason != "" {
		row("Method", "%s", configs.Solver{Method: r.Method, Why: r.MethodReason}.MethodText())
	}
	row(r.steps(), "%d of at most %d", r.Sweeps, r.MaxIterations)
	row("L2 norm", "%s", norm(r))
	row("Result", "%s", result(r))
	if a := r.Accuracy; a != nil {
		row("Error", "%s", accuracy(r.Mesh, a))
	} else if r.Setup != nil && r.Setup.Fixed != problem.NoFixed {
		row("Error", "no estimate: there are fixed points inside the mesh")
	}
	if r.Results != nil {
		lines = append(lines, r.Results.Lines()...)
	}
	row("Time", "%.4f s in the %ss (set-up %.4f s, output %.4f s)", r.Times.Sweeps, r.step(), r.Times.Setup,
		r.Times.Output)
	if r.ResumedAfter > 0 {
		row("Resumed", "after %s; times and speed are of the others", plural(r.ResumedAfter, r.step()))
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

// multigrid reports whether the method of the run is multigrid.
func (r Report) multigrid() bool { return r.Method == configs.Multigrid }

// chebyshev reports whether the method of the run is Chebyshev's iteration.
func (r Report) chebyshev() bool { return r.Method == configs.Chebyshev }

// step returns what Sweeps counts.
func (r Report) step() string { return configs.Solver{Method: r.Method}.Step() }

// steps returns step as a heading.
func (r Report) steps() string {
	if r.multigrid() {
		return "Cycles"
	}
	return "Sweeps"
}

func norm(r Report) string {
	switch {
	case r.Norm == nil && r.Sweeps > 0:
		return fmt.Sprintf("none, the first was due after %d sweeps (solver.norm_every)", r.NormEvery)
	case r.Norm == nil:
		return "none, no sweep was done"
	case r.NormEvery > 1 && r.NormSweep != nil:
		return fmt.Sprintf("%.10g after sweep %d, the last that has one (solver.norm_every %d, tolerance %g)", *r.Norm,
			*r.NormSweep, r.NormEvery, r.Tolerance)
	}
	if r.multigrid() {
		return fmt.Sprintf("%.10g after %s (tolerance %g, relative %g)", *r.Norm, plural(r.Sweeps, "cycle"),
			r.Tolerance,
			r.RelativeTolerance)
	}
	if r.chebyshev() {
		return fmt.Sprintf("%.10g after sweep %d (tolerance %g, relative %g)", *r.Norm, r.Sweeps-1, r.Tolerance,
			r.RelativeTolerance)
	}
	return fmt.Sprintf("%.10g after sweep %d (tolerance %g)", *r.Norm, r.Sweeps-1, r.Tolerance)
}

func result(r Report) string {
	if (r.multigrid() || r.chebyshev()) && r.Decisive != nil {
		if r.StopReason == solver.Converged {
			return "converged: the norm met the tolerance"
		}
		return "stalled: only rounding is left; the tolerance was not met"
	}
	switch d := r.Decisive; r.StopReason {
	case solver.Converged:
		text := fmt.Sprintf("converged: the norm of sweep %d, %.10g, met the tolerance", d.Sweep, d.Norm)
		if a := r.Accuracy; a != nil && r.Tolerance < a.Norm {
			text = fmt.Sprintf("converged as far as %s goes, a norm of about %.0e; "+
				"sweep %d met the tolerance with %.10g", r.Mesh.DType, a.Norm, d.Sweep, d.Norm)
		}
		return text
	case solver.Stalled:
		if d.Norm == 0 {
			return fmt.Sprintf("stalled: sweep %d changed nothing, so no later one would (%s)", d.Sweep, r.Mesh.DType)
		}
		return fmt.Sprintf("stalled: by sweep %d only rounding (%s) moved the field, to and fro; "+
			"the tolerance was not met", d.Sweep, r.Mesh.DType)
	case solver.MaxIterations:
		return "not converged: stopped at max_iterations"
	case solver.Interrupted:
		return fmt.Sprintf("INTERRUPTED after %s: the files hold the field at that point", plural(r.Sweeps, r.step()))
	}
	return string(r.StopReason)
}

func accuracy(m MeshReport, a *AccuracyReport) string {
	text := fmt.Sprintf("about %.0e at the worst point", a.Error)
	if a.Bound {
		text = "at most " + text
	}
	switch {
	case a.Error == 0:
		return "none known"
	case a.Error < 1.5*a.Attainable:
		text += fmt.Sprintf(", from rounding in %s", m.DType)
	case a.Error > a.Scale/2:
		text += ": far from the solution"
	}
	if a.Better != "" {
		text += fmt.Sprintf("; grid.dtype=%s attains the tolerance", a.Better)
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

// optionalColumns returns the columns that are dropped on a narrow terminal, in this order. The lines above the table
// summarise the first ones.
func optionalColumns() []string { return []string{"Device", "Bottom", "Top", "Host", "Memory", "Rows"} }

// rankTable lists the first tableRanks ranks, and says how many more are in the report.
func rankTable(w io.Writer, ranks []RankReport, width int) {
	fmt.Fprintln(w)
	t := new(bytes.Buffer)
	fmt.Fprintln(t, "  Rank\tHost\tDevice\tRows\tTop\tBottom\tCompute\tHalo wait\tNorm wait\tMemory")
	for _, k := range ranks[:min(len(ranks), tableRanks)] {
		fmt.Fprintf(t, "  %d\t%s\t%s\t[%d, %d)\t%s\t%s\t%.4f s\t%s\t%.4f s\t%s\n", k.Rank, k.Host, k.Device,
			k.Stripe[0], k.Stripe[1], side(k, solver.Top), side(k, solver.Bottom),
			k.Compute, haloWait(k), k.NormWait, bytesOf(k.MemoryBytes))
	}
	fmt.Fprint(w, fitColumns(t.String(), width, optionalColumns()))
	if slices.ContainsFunc(ranks, func(k RankReport) bool { return k.GPU != nil }) {
		fmt.Fprint(w, gpuTimes)
	}
	if more := len(ranks) - tableRanks; more > 0 {
		fmt.Fprintf(w, "  ... and %s, see the report\n", plural(more, "more rank"))
	}
}

// gpuTimes explains, below the table, the times on a GPU.
const gpuTimes = `  On a GPU, Compute is its host launching passes and waiting for them to end.
  While the host waits for halos or norms, the GPU sweeps on. "-": it waits for
  halos itself, and Compute has that time.
`

func haloWait(k RankReport) string {
	if k.HaloWait == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f s", *k.HaloWait)
}

// side describes the neighbour at a side of a rank: "rank 3, shared memory", or "boundary".
func side(k RankReport, s solver.Side) string {
	l, ok := k.Transports[s.String()]
	if !ok {
		return "boundary"
	}
	return fmt.Sprintf("rank %d, %s", l.Neighbour, l.Transport)
}
