package scaling

import (
	"fmt"
	"slices"
)

// Legend explains the columns of the table.
const Legend = `T_s, T_p: seconds in the sweeps with 1 and with p ranks. GLUP/s: 10^9 points (nx * ny) a second.
GB/s: one value read and one written per point. "of copy": GB/s over the speed of a copy on the
same devices. It may pass 100% if a pass does several sweeps (depth).`

// Definition defines speed-up and efficiency for the kind.
func (k Kind) Definition() string {
	if k == Weak {
		return "Weak scaling (rows grow with the ranks): speed-up p T_s/T_p, efficiency T_s/T_p"
	}
	return "Strong scaling (the mesh stays): speed-up T_s/T_p, efficiency T_s/(p T_p)"
}

// A line of the table has at most 100 columns.
const (
	headFormat = "%13s %5s %5s %9s %9s %8s %6s %9s %8s %7s  %s\n"
	rowFormat  = "%13s %5d %5d %9s %9.4g %8s %6s %9s %8s %7s  %s\n"
)

// Header returns the header line of the table.
func Header() string {
	return fmt.Sprintf(headFormat, "nx x ny", "ranks", "depth", "T_s", "T_p", "speed-up", "effic.", "GLUP/s", "GB/s",
		"of copy", "halos by")
}

// Row returns the line of r in the table.
func (r Record) Row() string {
	return fmt.Sprintf(rowFormat, fmt.Sprintf("%dx%d", r.NX, r.NY), r.Ranks, r.Depth, optional(r.Serial, 1, "%.4g"),
		r.Parallel,
		optional(r.SpeedUp, 1, "%.2f"), optional(r.Efficiency, 1, "%.3f"), decimals(r.GLUPS), decimals(r.Traffic),
		optional(r.CopyFraction, 100, "%.0f%%"), r.halos())
}

// optional formats a number times a factor, or "-" if there is none.
func optional(v *float64, factor float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, factor**v)
}

// decimals formats a speed with three decimals below 100, and with one from there on.
func decimals(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// halos returns one word for the transport of the halos, "mixed" if there are several.
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
