package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Policy is the rule by which a rank selects its GPU.
type Policy string

// The policies, as device.select names them. All except RoundRobin need readings and sort the candidates by them. The
// rank with local rank r then takes the one at position r % n, so that the ranks of a node spread over its GPUs. Ranks
// take different GPUs only if they sort by the same readings.
const (
	RoundRobin     Policy = "round-robin" // CUDA's order
	LeastUtilized  Policy = "least-utilized"
	MostFreeMemory Policy = "most-free-memory"
	Coolest        Policy = "coolest"
	LeastPower     Policy = "least-power"
)

// Policies returns all policies, the default first.
func Policies() []Policy {
	return []Policy{RoundRobin, LeastUtilized, MostFreeMemory, Coolest, LeastPower}
}

// ErrNoCandidate reports that there is no GPU to select from.
var ErrNoCandidate = errors.New("no GPU to choose from")

// Choice is the GPU that a rank takes.
type Choice struct {
	Candidate
	Why string // for the user
}

// Select chooses the GPU of the rank with the given local rank (its number on its node) among the candidates. gpus are
// the readings of the node; RoundRobin ignores them. GPUs with equal readings keep CUDA's order.
func Select(p Policy, localRank int, candidates []Candidate, gpus []GPU) (Choice, error) {
	n := len(candidates)
	if n == 0 {
		return Choice{}, ErrNoCandidate
	}
	place := localRank % n
	if p == RoundRobin {
		return Choice{candidates[place], fmt.Sprintf("%s: local rank %d, %s", p, localRank,
			english.Plural(n, "GPU", ""))}, nil
	}
	order := slices.Clone(candidates)
	loads := make(map[int]load, n) // by CUDA's index
	for _, c := range candidates {
		g, err := Find(c, gpus)
		if err != nil {
			return Choice{}, fmt.Errorf("device.select %q: %w", p, err)
		}
		if loads[c.Index], err = p.load(g); err != nil {
			return Choice{}, err
		}
	}
	slices.SortStableFunc(order, func(a, b Candidate) int {
		return cmp.Compare(loads[a.Index].amount,
			loads[b.Index].amount)
	})
	c := order[place]
	return Choice{c, fmt.Sprintf("%s: local rank %d, number %d of %d by %s", p, localRank, place+1, n,
		loads[c.Index].text)}, nil
}

// load is the reading that a policy minimises, as a number to sort by and as text.
type load struct {
	amount int64
	text   string
}

func (p Policy) load(g GPU) (load, error) {
	var reading int64
	var l load
	switch p {
	case LeastUtilized:
		reading = int64(g.Utilization)
		l = load{reading, fmt.Sprintf("utilization (%d%%)", reading)}
	case MostFreeMemory:
		reading = g.FreeBytes
		l = load{-reading, fmt.Sprintf("free memory (%s)", humanize.IBytes(uint64(max(0, reading))))}
	case Coolest:
		reading = int64(g.Celsius)
		l = load{reading, fmt.Sprintf("temperature (%d C)", reading)}
	case LeastPower:
		reading = int64(g.Milliwatts)
		l = load{reading, fmt.Sprintf("power (%.1f W)", float64(reading)/1000)}
	default:
		return l, fmt.Errorf("device.select %q is unknown", p)
	}
	if reading == Unknown {
		return l, fmt.Errorf("device.select %q: NVML has no such reading of GPU %d (%s); allowed here is %s", p,
			g.Index, g.Name, RoundRobin)
	}
	return l, nil
}
