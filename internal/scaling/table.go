package scaling

import (
	"fmt"
	"slices"
)

// Legend says what the columns of the table are.
const Legend = `T_s, T_p: seconds in the sweeps with 1 rank and with these. GLUP/s: 10^9 points (nx * ny) a second.
GB/s: one value read and one written for each point. "of copy": that over the speed of a copy on the
same devices; it passes 100% where one pass does several sweeps (depth).`

// Definition says what speed-up and efficiency mean for the kind.
func (k Kind) Definition() string {
	if k == Weak {
		return "Weak scaling (rows grow with the ranks): speed-up p T_s/T_p, efficiency T_s/T_p"
	}
	return "Strong scaling (the mesh stays): speed-up T_s/T_p, efficiency T_s/(p T_p)"
}

// The columns fit into 100.
const (
	headFormat = "%13s %5s %5s %9s %9s %8s %6s %9s %8s %7s  %s\n"
	rowFormat  = "%13s %5d %5d %9s %9.4g %8s %6s %9s %8s %7s  %s\n"
)

// Header returns the line above the rows.
func Header() string {
	return fmt.Sprintf(headFormat, "nx x ny", "ranks", "depth", "T_s", "T_p", "speed-up", "effic.", "GLUP/s", "GB/s",
		"of copy", "halos by")
}

// Row returns r as a line.
func (r Record) Row() string {
	return fmt.Sprintf(rowFormat, fmt.Sprintf("%dx%d", r.NX, r.NY), r.Ranks, r.Depth, optional(r.Serial, 1, "%.4g"),
		r.Parallel,
		optional(r.SpeedUp, 1, "%.2f"), optional(r.Efficiency, 1, "%.3f"), decimals(r.GLUPS), decimals(r.Traffic),
		optional(r.CopyFraction, 100, "%.0f%%"), r.halos())
}

// optional writes a number times a factor, or a dash for none.
func optional(v *float64, factor float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, factor**v)
}

// decimals writes a speed with three decimals where it is low, and one where it is high.
func decimals(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// halos says in a word what carries the halos.
func (r Record) halos() string {
	short := map[string]string{"shared memory": "shared", "peer memory": "peer"}
	var kinds []string
	for _, p := range r.Transports {
		kind := p.Transport
		if p.Rank == p.Neighbour {
			kind = "itself"
		} else if s, ok := short[kind]; ok {
			kind = s
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	switch kinds = slices.Compact(kinds); len(kinds) {
	case 0:
		return "none"
	case 1:
		return kinds[0]
	}
	return "mixed"
}
