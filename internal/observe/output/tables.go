package output

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"jacobi/solver"
)

// tableRanks is the largest number of ranks that the summary lists.
const tableRanks = 16

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
	// The lines above the table summarise the columns that a narrow terminal loses first.
	fmt.Fprint(w, fitColumns(t.String(), width, []string{"Device", "Bottom", "Top", "Host", "Memory", "Rows"}))
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

// The transports between nodes, as halo names them.
const (
	overNATS = "nats"
	overTCP  = "direct"
)

// slowShare is the share of the time of the sweeps from which waits for rows over NATS are worth a word.
const slowShare = 0.1

// linkTable lists the links over NATS or TCP, at the bottom of each of the first tableRanks ranks. The times are those
// of one exchange.
func linkTable(w io.Writer, r Report, width int) {
	t := new(bytes.Buffer)
	for _, k := range r.Ranks {
		l, ok := k.Transports[solver.Bottom.String()]
		if !ok || l.Traffic == nil || l.Traffic.LinkTime == nil || l.Transport != overNATS && l.Transport != overTCP {
			continue
		}
		if t.Len() == 0 {
			fmt.Fprintln(t, "  Link\tTransport\tExchanges\tRows\tPacked\tCopy out\tSend\tWait\tCopy in")
		}
		n := l.Traffic
		fmt.Fprintf(t, "  %d-%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Rank, l.Neighbour, l.Transport, n.Exchanges,
			bytesOf(int64(n.Bytes/n.Exchanges/2)), l.packed(), each(n.CopyOut, n.Exchanges), each(n.Send, n.Exchanges),
			each(n.Wait, n.Exchanges), each(n.CopyIn, n.Exchanges))
		if k.Rank >= tableRanks {
			break
		}
	}
	if t.Len() > 0 {
		fmt.Fprintf(w, "\n%s", fitColumns(t.String(), width, []string{"Exchanges", "Rows", "Copy in", "Copy out"}))
	}
	if rank, share, slow := r.WaitsForNATS(); slow {
		fmt.Fprintf(w, "  Rank %d waited for rows over NATS for %.0f%% of the time. With halo.transport=direct\n"+
			"  rows go from rank to rank (docs/hardware.md).\n", rank, 100*share)
	}
}

// strangers says how much the ranks have refused of others, if anything.
func strangers(w io.Writer, r Report) {
	var messages, connections uint64
	for _, k := range r.Ranks {
		messages += k.RefusedMessages
		for _, l := range k.Transports {
			if l.Direct != nil {
				connections += l.Direct.Refused
			}
		}
	}
	if messages+connections > 0 {
		fmt.Fprintf(w, "  Refused: %s and %s of others (docs/security.md).\n", plural(int(messages), "message"),
			plural(int(connections), "connection"))
	}
}

// packed returns how much of the rows this rank packed, and how many times smaller they became.
func (l *LinkReport) packed() string {
	var plain, packed uint64
	switch {
	case l.NATS != nil:
		plain, packed = l.NATS.Plain, l.NATS.Packed
	case l.Direct != nil:
		plain, packed = l.Direct.Plain, l.Direct.Packed
	}
	if packed == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%, %.1fx", min(100, 200*float64(plain)/float64(l.Traffic.Bytes)),
		float64(plain)/float64(packed))
}

// each returns the part of total, in seconds, that falls to one exchange.
func each(total float64, exchanges uint64) string {
	return time.Duration(total / float64(exchanges) * 1e9).Round(time.Microsecond).String()
}

// WaitsForNATS returns the rank that waited for halos for the largest share of the sweeps, among those with a link over
// NATS for which the user has not tried another transport. slow reports whether the share is worth a word.
func (r *Report) WaitsForNATS() (rank int, share float64, slow bool) {
	for _, k := range r.Ranks {
		if k.HaloWait == nil || r.Times.Sweeps <= 0 {
			continue
		}
		for _, l := range k.Transports {
			asked := strings.Contains(l.Why, "halo.transport is nats") || strings.Contains(l.Why, overTCP+" failed")
			if s := *k.HaloWait / r.Times.Sweeps; l.Transport == overNATS && !asked && s > share {
				rank, share = k.Rank, s
			}
		}
	}
	return rank, share, share >= slowShare
}

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
