package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy says how a rank chooses its GPU.
type Policy string

// The policies. All but LocalRank need readings, and put the candidates into an order: the rank with local rank r takes
// the one at place r % n, so that the ranks of a node spread over its GPUs. They take different ones only if
// they order by the same readings.
const (
	LocalRank      Policy = "local-rank" // CUDA's order
	LeastUtilized  Policy = "least-utilized"
	MostFreeMemory Policy = "most-free-memory"
	Coolest        Policy = "coolest"
	LeastPower     Policy = "least-power"
)

// Policies returns all policies, the default first.
func Policies() []Policy {
	return []Policy{LocalRank, LeastUtilized, MostFreeMemory, Coolest, LeastPower}
}

// ParsePolicy returns the policy called name.
func ParsePolicy(name string) (Policy, error) {
	if p := Policy(name); slices.Contains(Policies(), p) {
		return p, nil
	}
	names := make([]string, 0, len(Policies()))
	for _, p := range Policies() {
		names = append(names, string(p))
	}
	return "", fmt.Errorf("device selection %q: allowed are %s", name, strings.Join(names, ", "))
}

// ErrNoCandidate says that there is no GPU to choose from.
var ErrNoCandidate = errors.New("no GPU to choose from")

// Select chooses the GPU of the rank with the given local rank (its number on its node) among the candidates. gpus are
// the readings of the node; LocalRank does without. GPUs with equal readings keep CUDA's order.
func Select(p Policy, localRank int, candidates []Candidate, gpus []GPU) (Candidate, error) {
	if len(candidates) == 0 {
		return Candidate{}, ErrNoCandidate
	}
	order := slices.Clone(candidates)
	if p != LocalRank {
		load := make(map[int]int64, len(candidates)) // by CUDA's index
		for _, c := range candidates {
			g, err := Find(c, gpus)
			if err != nil {
				return Candidate{}, fmt.Errorf("select the %s GPU: %w", p, err)
			}
			if load[c.Index], err = p.load(g); err != nil {
				return Candidate{}, err
			}
		}
		slices.SortStableFunc(order, func(a, b Candidate) int { return cmp.Compare(load[a.Index], load[b.Index]) })
	}
	return order[localRank%len(order)], nil
}

// load returns what the policy wants little of.
func (p Policy) load(g GPU) (int64, error) {
	var load int64
	switch p {
	case LeastUtilized:
		load = int64(g.Utilization)
	case MostFreeMemory:
		load = -g.FreeBytes
		if g.FreeBytes == Unknown {
			load = Unknown
		}
	case Coolest:
		load = int64(g.Celsius)
	case LeastPower:
		load = int64(g.Milliwatts)
	default:
		return 0, fmt.Errorf("device selection %q is unknown", string(p))
	}
	if load == Unknown {
		return 0, fmt.Errorf("select the %s GPU: GPU %d (%s) does not tell", p, g.Index, g.Name)
	}
	return load, nil
}
