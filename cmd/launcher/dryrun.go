package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/base/style"
	"jacobi/internal/run/plan"
)

// printPlan describes the run in comments, followed by the merged configuration, so that the output is a valid run
// file.
func printPlan(ctx context.Context, w io.Writer, p *plan.Plan, warnings []string) error {
	available, bound, err := configs.AvailableMemory()
	if err != nil {
		return fmt.Errorf("memory of this machine: %w", err)
	}
	merged, err := configs.YAML(configs.Redacted(p.Config))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Dry run: nothing was started.\n# %v\n# It %s\n", p, p.Writes())
	if setup, ok := p.Problem(ctx); ok {
		for _, line := range setup.Lines() {
			fmt.Fprintf(&b, "# %s: %s\n", line[0], line[1])
		}
	}
	for _, input := range p.Config.Inputs() {
		where := "in the working directory"
		if input.ByRunFile {
			where = "beside the run file"
		} else if filepath.IsAbs(input.Path) {
			where = "an absolute path"
		}
		if input.Key == p.Config.Grid.From {
			where += "; grid.nx and grid.ny follow from its size"
		}
		fmt.Fprintf(&b, "# %s: %s, %s\n", input.Key, show.Text(input.Path), where)
	}
	if e := p.Expects(ctx); e.Hint != "" {
		fmt.Fprintf(&b, "# %s\n", e.Hint)
	}
	if p.Idle != "" {
		fmt.Fprintf(&b, "# %s\n", p.Idle)
	}
	fmt.Fprintf(&b, "# Halo depth %d (%s)\n", p.Depth.Rows, p.WhyDepth)
	if text := p.Balance(); text != "" {
		fmt.Fprintf(&b, "# Stripes: %s\n", text)
	}
	if p.WhyCPU != nil {
		fmt.Fprintf(&b, "# The CPU sweeps: %v\n", p.WhyCPU)
	}
	for _, text := range warnings {
		fmt.Fprintf(&b, "# Warning: %s\n", text)
	}
	where, pictures := "", ""
	if len(p.Names()) > 1 {
		where = " on this machine"
	}
	if bytes := p.PicturesHere(); bytes > 0 {
		pictures = fmt.Sprintf(", %s to read the picture of the problem", bytesText(bytes))
	}
	fmt.Fprintf(&b, "# Memory%s: %s for fields and halos%s, %s available (%s)\n#\n", where, bytesText(p.BytesHere()),
		pictures, bytesText(available), bound)
	if l := p.Levels; l != nil && l.Plan.Weighted {
		fmt.Fprintf(&b, "# Hard coefficients: about %s more for each rank if the cycles go over to aggregates\n#\n",
			bytesText(l.Plan.AggregateBytes(len(p.Placements))))
	}
	table, err := rankTable(p)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(table) {
		fmt.Fprintf(&b, "#   %s", line)
	}
	fmt.Fprintf(&b, "#\n# The merged configuration, a run file as it stands:\n%s", merged)
	return show.Fprint(w, foldComments(b.String(), style.Of(w).Width))
}

// foldComments breaks comments of more than width columns between words; 0 is any width.
func foldComments(text string, width int) string {
	const more = "#     "
	var b strings.Builder
	for line := range strings.Lines(text) {
		if body, comment := strings.CutPrefix(line, "# "); comment && width > 0 {
			body = style.Fold(strings.TrimSuffix(body, "\n"), width-len(more))
			line = "# " + strings.ReplaceAll(body, "\n", "\n"+more) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// rankTable returns a table of the ranks, one a line.
func rankTable(p *plan.Plan) ([]byte, error) {
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	heading := "rank\thost\tlocal rank\trows\theight\tmemory"
	if p.Choices != nil {
		heading += "\tGPU\tname\tUUID\twhy"
	}
	fmt.Fprintln(t, heading)
	for r, at := range p.Placements {
		s := p.Stripes[r]
		fmt.Fprintf(t, "%d\t%s\t%d of %d\t%v\t%d\t%s", r, at.Host, at.LocalRank, at.LocalSize, s, s.Rows(),
			bytesText(p.Memory[r]))
		if p.Choices != nil {
			if c := p.Choices[r]; c != nil {
				fmt.Fprintf(t, "\t%d\t%s\t%s\t%s", c.Index, c.Name, c.UUID, c.Why)
			} else {
				fmt.Fprint(t, "\t\t\t\tchosen on its host")
			}
		}
		fmt.Fprintln(t)
	}
	err := t.Flush()
	return table.Bytes(), err
}

func bytesText(n int64) string { return humanize.IBytes(uint64(n)) }
