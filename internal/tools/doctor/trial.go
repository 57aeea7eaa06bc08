package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// findings are what ranks have found.
type findings struct {
	faults []Finding
	nodes  []Node
	ranks  []examine.Rank // those that have reported
}

// trial starts the ranks of p and returns what they found.
func (run Run) trial(ctx context.Context, p *plan.Plan, starter attempt.Starter) (findings, error) {
	c := collected{make([]examine.Rank, len(p.Ranks))}
	end, err := attempt.Run(ctx, p, attempt.Options{Starter: starter, Limit: run.Limit, Trial: true, Screen: run.Screen,
		Show: func() attempt.Progress { return c }})
	if err != nil {
		return findings{faults: faultsOf(err, "correct it on the host that it names")}, nil
	}
	return conclude(p, end.Outcome, c.ranks)
}

// collected is a progress that collects the findings that ranks publish when one of them fails.
type collected struct{ ranks []examine.Rank }

// Event implements attempt.Progress.
func (c collected) Event(e roster.Event) {
	var r examine.Rank
	if e.Kind == roster.Examined && e.Rank >= 0 && e.Rank < len(c.ranks) && json.Unmarshal(e.Report, &r) == nil {
		c.ranks[e.Rank] = r
	}
}

// Close implements attempt.Progress.
func (collected) Close() {}

// conclude returns the findings of a trial that ended with out. published are those that ranks published, by rank; they
// count only if a rank failed.
func conclude(p *plan.Plan, out launch.Outcome, published []examine.Rank) (findings, error) {
	if out.Err == nil && out.ExitCode() != launch.ExitOK {
		return findings{}, launch.ExitError{Code: out.ExitCode()}
	}
	ranks := published
	if out.Err == nil {
		ranks = nil
		if err := json.Unmarshal(out.Report, &ranks); err != nil {
			return findings{}, fmt.Errorf("the ranks were ready to sweep, but their findings were lost: %w", err)
		}
	}
	unknown := func(r examine.Rank) bool { return r.Rank < 0 || r.Rank >= len(p.Ranks) }
	ranks = slices.DeleteFunc(slices.Clone(ranks), unknown)
	faults := rankFaults(p, ranks)
	if out.Err != nil && len(faults) == 0 {
		faults = faultsOf(out.Err, "correct it on that host, or run elsewhere; -v shows the output of the ranks")
	}
	silent := func(r examine.Rank) bool { return r.Node.Version == "" }
	ranks = slices.DeleteFunc(ranks, silent)
	return findings{faults: faults, nodes: nodes(p, ranks), ranks: ranks}, nil
}

// rankFaults returns the faults of ranks that do not follow from others. Several ranks may report the same fault.
func rankFaults(p *plan.Plan, ranks []examine.Rank) (faults []Finding) {
	known := map[string]bool{}
	for _, r := range ranks {
		if r.Fault != "" && !r.Consequence && !known[r.Fault] {
			known[r.Fault] = true
			faults = append(faults, faultsOf(fmt.Errorf("rank %d on %s: %s", r.Rank, p.Ranks[r.Rank].Host, r.Fault),
				"correct it on that host, or run elsewhere")...)
		}
	}
	return faults
}
