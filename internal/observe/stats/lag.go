package stats

import "slices"

// lagShare is the part of their time that the other ranks must wait longer than a rank, so that it lags.
const lagShare = 0.2

// Lagging returns the ranks for which the others wait, by index of ranks: those that wait less than half as long as the
// median, and by lagShare of the time less. All ranks do the same sweeps, so a slow rank is one that never waits. A
// rank that is nil has told nothing; without waits of halos (see Rank.HaloWait) nothing is known.
func Lagging(ranks []*Rank) []int {
	var waits []float64
	for _, r := range ranks {
		if r != nil && r.Recent.HaloWait != nil {
			waits = append(waits, r.waits())
		}
	}
	if len(waits) < 2 {
		return nil
	}
	slices.Sort(waits)
	typical := waits[len(waits)/2]
	var lag []int
	for i, r := range ranks {
		if r != nil && r.Recent.HaloWait != nil && r.waits() < typical/2 && typical-r.waits() >= lagShare {
			lag = append(lag, i)
		}
	}
	return lag
}

// waits returns the share of the recent time that the rank has waited.
func (r *Rank) waits() float64 { return *r.Recent.HaloWait + r.Recent.NormWait }
