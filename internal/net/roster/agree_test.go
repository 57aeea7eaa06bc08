package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"jacobi/internal/net/roster/rostertest"
)

// agreeAll has the ranks of comms agree. faults are those of ranks.
func agreeAll(comms []*Comm, faults map[int]error, unite func([]Share) ([]int, error)) (got [][]int, errs []error) {
	got, errs = make([][]int, len(comms)), make([]error, len(comms))
	var all sync.WaitGroup
	for r, comm := range comms {
		all.Go(func() {
			s := Share{Role: Role{Device: "cpu", Depth: 10 + r, MaxSweeps: 5}, Part: Part{MaxAbs: float64(r), Fixed: 2},
				Contents: map[string][]byte{"f": {byte(r)}}}
			got[r], errs[r] = AgreeOn(comm.Context(), comm, s, faults[r],
				func(_ context.Context, shares []Share) ([]int, error) { return unite(shares) })
		})
	}
	all.Wait()
	return got, errs
}

// united returns what the shares of ranks have in common.
func united(shares []Share) (of []int, err error) {
	for _, s := range shares {
		of = append(of, int(s.Contents["f"][0]))
	}
	return of, nil
}

// Ranks agree on roles, on the largest values of all, and on what rank 0 makes of their shares: those that have joined,
// those of a run of their session, and one that does a run alone.
func TestAgree(t *testing.T) {
	comms := joined(t, plain(rostertest.Start(t, 0)), 3)
	check := func(of []*Comm) {
		t.Helper()
		got, errs := agreeAll(of, nil, united)
		for r, comm := range of {
			var all []int
			for i := range of {
				all = append(all, i)
			}
			whole := Part{MaxAbs: float64(len(of) - 1), Fixed: int64(2 * len(of))}
			if errs[r] != nil || !slices.Equal(got[r], all) || comm.Whole() != whole {
				t.Errorf("rank %d of %d: %v, united %v, whole %+v", r, len(of), errs[r], got[r], comm.Whole())
			}
			for i := range of {
				m := comm.Member(i)
				if m.Role != (Role{"cpu", 10 + i, 5}) || len(of) > 1 && m.Host != fmt.Sprintf("host%d", i) {
					t.Errorf("rank %d of %d: rank %d is %+v", r, len(of), i, m)
				}
			}
		}
	}
	check(comms)
	var subs []*Comm
	for _, comm := range comms {
		subs = append(subs, comm.Sub(1))
	}
	check(subs)
	var stages []*Comm
	for _, sub := range subs {
		stages = append(stages, sub.Stage("mesh 1"))
	}
	check(stages)
	alone := comms[2].Alone(2)
	check([]*Comm{alone})
	names := map[string]bool{}
	for _, c := range []*Comm{comms[2], comms[2].Stage("mesh 1"), subs[2], stages[2], alone} {
		names[c.Name()] = true
	}
	if len(names) != 5 || stages[0].Name() != stages[2].Name() {
		t.Errorf("a run, a stage of it, its runs 1 and 2 and a stage of run 1 are called %v", names)
	}
}

// All ranks get the same refusal: the fault that all have, those of single ranks by their numbers, or that of what
// rank 0 was to make of the shares.
func TestAgreeRefuses(t *testing.T) {
	none, broken := errors.New("no such file"), errors.New("the file is broken")
	server := plain(rostertest.Start(t, 0))
	for want, c := range map[string]struct {
		faults map[int]error
		unite  func([]Share) ([]int, error)
	}{
		"no such file":         {map[int]error{0: none, 1: none, 2: none}, united},
		"rank 1: no such file": {map[int]error{1: none}, united},
		"no free point":        {map[int]error{0: errors.New("no free point")}, united},
		"rank 0: no such file; rank 2: the file is broken": {map[int]error{0: none, 2: broken}, united},
		"the file is broken": {nil, func([]Share) ([]int, error) { return nil, broken }},
	} {
		comms := joined(t, server, 3)
		_, errs := agreeAll(comms, c.faults, c.unite)
		for r, err := range errs {
			if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Text != want {
				t.Errorf("rank %d: %v, want %s", r, err, want)
			}
			comms[r].Close()
		}
	}
}
