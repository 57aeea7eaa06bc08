package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"jacobi/configs"
	"jacobi/internal/show"
)

// print describes the run in comments, followed by the merged configuration, so that the output is a valid run file.
func (p *plan) print(w io.Writer) error {
	available, bound, err := configs.AvailableMemory()
	if err != nil {
		return fmt.Errorf("memory of this machine: %w", err)
	}
	merged, err := configs.YAML(configs.Redacted(p.cfg))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Dry run: nothing was started.\n# %v\n# It %s\n", p, p.writes())
	switch text, warning := p.expects(context.Background()); {
	case warning != "":
		fmt.Fprintf(&b, "# Warning: %s\n", warning)
	case text != "":
		fmt.Fprintf(&b, "# %s\n", text)
	}
	fmt.Fprintf(&b, "# Halo depth %d (%s)\n", p.depth, p.why)
	if p.whyCPU != nil {
		fmt.Fprintf(&b, "# The CPU sweeps: %v\n", p.whyCPU)
	}
	for _, text := range p.warnings(os.Environ()) {
		fmt.Fprintf(&b, "# Warning: %s\n", text)
	}
	where := ""
	if len(p.names()) > 1 {
		where = " on this machine"
	}
	fmt.Fprintf(&b, "# Memory%s: %s for fields and halos, %s available (%s)\n#\n", where, bytesText(p.hereBytes()),
		bytesText(available), bound)

	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	heading := "rank\thost\tlocal rank\trows\theight\tmemory"
	if p.choices != nil {
		heading += "\tGPU\tname\tUUID\twhy"
	}
	fmt.Fprintln(t, heading)
	for r, at := range p.ranks {
		s := p.stripes[r]
		fmt.Fprintf(t, "%d\t%s\t%d of %d\t%v\t%d\t%s", r, at.Host, at.LocalRank, at.LocalSize, s, s.Rows(),
			bytesText(p.memory[r]))
		if p.choices != nil {
			fmt.Fprint(t, p.gpu(r))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(table.Bytes()) {
		fmt.Fprintf(&b, "#   %s", line)
	}
	fmt.Fprintf(&b, "#\n# The merged configuration, a run file as it stands:\n%s", merged)
	return show.Fprint(w, b.String())
}
