// Package launch starts the ranks of a run, watches them, and sees to it that none outlives the run.
package launch

// Placement says where a rank runs.
type Placement struct {
	Rank      int
	Host      string
	LocalRank int // 0 <= LocalRank < LocalSize: the rank's number among those of its host
	LocalSize int
}

// OneHost places all ranks of a run on one host.
func OneHost(host string, ranks int) []Placement {
	ps := make([]Placement, ranks)
	for r := range ps {
		ps[r] = Placement{Rank: r, Host: host, LocalRank: r, LocalSize: ranks}
	}
	return ps
}
