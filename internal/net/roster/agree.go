package roster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Role is what a rank does in a run. It is zero before Agree.
type Role struct {
	Device    string `json:"device,omitempty"`
	Depth     int    `json:"depth,omitempty"`      // the halo depth that its backend prefers
	MaxSweeps int    `json:"max_sweeps,omitempty"` // maximum number of sweeps in a pass of its backend
}

// Part is what a rank has found in its rows of the problem.
type Part struct {
	MaxAbs    float64 `json:"max_abs"`              // the largest absolute value of walls and fixed points
	MaxGuess  float64 `json:"max_guess,omitempty"`  // of the initial field at points that are not fixed
	MaxSource float64 `json:"max_source,omitempty"` // the largest absolute value of the operator's source
	Fixed     int64   `json:"fixed,omitempty"`      // points that problem.fixed fixes
	// Of a weighted operator: see problem.Maxima.
	Diagonal float64 `json:"diagonal,omitempty"`
	Centre   float64 `json:"centre,omitempty"`
	Barrier  float64 `json:"barrier,omitempty"`
	Open     bool    `json:"open,omitempty"`
}

// add makes p the part of both.
func (p *Part) add(q Part) {
	p.MaxAbs, p.MaxGuess = max(p.MaxAbs, q.MaxAbs), max(p.MaxGuess, q.MaxGuess)
	p.MaxSource, p.Fixed = max(p.MaxSource, q.MaxSource), p.Fixed+q.Fixed
	p.Diagonal, p.Centre = max(p.Diagonal, q.Diagonal), max(p.Centre, q.Centre)
	p.Barrier, p.Open = max(p.Barrier, q.Barrier), p.Open || q.Open
}

// RefusedError says why a run has not begun. All its ranks have the same one, and may go on to the next run.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// Share is what a rank brings to a run: its role, and what it has found in its part of the problem.
type Share struct {
	Role
	Part     Part              `json:"part"`
	Contents map[string][]byte `json:"contents,omitempty"` // of files; see package problem
	Islands  json.RawMessage   `json:"islands,omitempty"`  // a problem.Survey
	Values   []float64         `json:"values,omitempty"`   // of regions that float, as far as the rank knows them
}

// said is what a rank says in Agree.
type said struct {
	Share
	Fault string `json:"fault,omitempty"`
}

// agreed is the answer of rank 0.
type agreed[T any] struct {
	Fault  string `json:"fault,omitempty"`
	List   []byte `json:"list,omitempty"`
	United T      `json:"united"`
}

// AgreeOn has all ranks of a run, which have met, agree on it. They learn each other's roles, and Comm.Whole. A fault,
// if it is not nil, is why this rank cannot take part. All ranks call AgreeOn, and all get what unite makes, on rank 0,
// of the shares of all. Where ranks have faults or unite has one, all get the same *RefusedError.
func AgreeOn[T any](ctx context.Context, t *Comm, mine Share, fault error,
	unite func(context.Context, []Share) (T, error)) (united T, err error) {
	own := said{Share: mine}
	if fault != nil {
		own = said{Fault: clip(fault.Error())}
	}
	answer, err := DecideOn(ctx, t, "agree", own, func(all []said) (a agreed[T], err error) {
		if a.Fault = faultsOf(all); a.Fault != "" {
			return a, nil
		}
		shares, members := make([]Share, len(all)), make([]Member, len(all))
		for r, s := range all {
			shares[r], members[r] = s.Share, t.Member(r)
			members[r].Role = s.Role
		}
		if a.United, err = unite(ctx, shares); err != nil {
			return agreed[T]{Fault: clip(err.Error())}, nil
		}
		l := newList(members)
		for _, s := range shares {
			l.Whole.add(s.Part)
		}
		a.List, err = l.encode()
		return a, err
	})
	if err != nil {
		return united, err
	}
	if answer.Fault != "" {
		return united, &RefusedError{answer.Fault}
	}
	t.members, err = parseList(answer.List, t.self.Size)
	return answer.United, err
}

// faultsOf returns why the run cannot begin: a fault that all ranks have, or rank 0 alone, which checks for all, or
// those of single ranks.
func faultsOf(all []said) string {
	var faults []string
	for r, s := range all {
		if s.Fault != "" {
			faults = append(faults, fmt.Sprintf("rank %d: %s", r, s.Fault))
		}
	}
	same := !slices.ContainsFunc(all, func(s said) bool { return s.Fault != all[0].Fault })
	if same || len(faults) == 1 && all[0].Fault != "" {
		return all[0].Fault
	}
	return clip(strings.Join(faults, "; "))
}
