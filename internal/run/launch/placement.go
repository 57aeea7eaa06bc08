// Package launch starts the ranks of a run, on this machine and on others, watches them, and ensures that none of them
// outlives the run.
package launch

import (
	"fmt"
	"strings"
)

// Placement says where a rank runs.
type Placement struct {
	Rank      int
	Host      string
	LocalRank int // index among the ranks of the same host: 0 <= LocalRank < LocalSize
	LocalSize int
}

// Slots is the number of ranks that a host takes.
type Slots struct {
	Host  string
	Slots int
}

// MapBy is the order in which ranks take slots.
type MapBy uint8

// The orders.
const (
	MapBySlot MapBy = iota // fill each host before the next
	MapByNode              // place one rank on each host in turn
)

// ParseMapBy reads "slot" or "node".
func ParseMapBy(name string) (MapBy, error) {
	switch name {
	case "slot":
		return MapBySlot, nil
	case "node":
		return MapByNode, nil
	}
	return 0, fmt.Errorf("%q: allowed are slot and node", name)
}

// OneHost places all ranks of a run on one host.
func OneHost(host string, ranks int) []Placement {
	ps, _ := Place([]Slots{{host, ranks}}, ranks, MapBySlot) // there are as many slots as ranks
	return ps
}

// Place gives each rank a slot. If there are too few slots, the error lists them.
func Place(hosts []Slots, ranks int, by MapBy) ([]Placement, error) {
	total := 0
	for _, h := range hosts {
		total += h.Slots
	}
	if ranks > total {
		return nil, fmt.Errorf("%d ranks need %[1]d slots, and there are %d: %s", ranks, total, FormatSlots(hosts))
	}
	turn := total // slots of a host that are filled before the next host
	if by == MapByNode {
		turn = 1
	}
	ps := make([]Placement, 0, ranks)
	taken := make([]int, len(hosts))
	for len(ps) < ranks {
		for i, h := range hosts {
			for range min(turn, h.Slots-taken[i], ranks-len(ps)) {
				ps = append(ps, Placement{Rank: len(ps), Host: h.Host, LocalRank: taken[i]})
				taken[i]++
			}
		}
	}
	size := map[string]int{}
	for i, h := range hosts {
		size[h.Host] = taken[i]
	}
	for i := range ps {
		ps[i].LocalSize = size[ps[i].Host]
	}
	return ps, nil
}

// FormatSlots returns hosts as "a 4, b 2".
func FormatSlots(hosts []Slots) string {
	parts := make([]string, len(hosts))
	for i, h := range hosts {
		parts[i] = fmt.Sprintf("%s %d", h.Host, h.Slots)
	}
	return strings.Join(parts, ", ")
}
