package output

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"jacobi/solver"
)

// tableRanks is the largest number of ranks that the summary lists.
const tableRanks = 16

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
