package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jacobi/internal/run/launch"
)

// prepare takes slots for the ranks of spec and adapts spec to this node: the agent's own program and its own access to
// the server.
func (a *Agent) prepare(ctx context.Context, spec *launch.Spec) (done func(), err error) {
	if len(spec.Ranks) == 0 {
		return nil, errors.New("no ranks are to be started")
	}
	env, err := environ(spec.Env, a.Server)
	if err != nil {
		return nil, err
	}
	spec.Path, spec.Args, spec.Dir, spec.Env = a.Path, nil, ".", env
	if a.Prepare != nil {
		if done, err = a.Prepare(ctx, spec); err != nil {
			return nil, err
		}
	}
	if err := a.take(spec.Ranks[0].RunID, len(spec.Ranks)); err != nil {
		if done != nil {
			done()
		}
		return nil, err
	}
	return done, nil
}

func (a *Agent) take(run string, ranks int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ranks > a.free {
		var others []string
		for _, r := range slices.Sorted(maps.Keys(a.by)) {
			others = append(others, fmt.Sprintf("run %s has %d", r, a.by[r]))
		}
		if others == nil {
			others = []string{"none is taken"}
		}
		return fmt.Errorf("they need %d slots, and %d of %d are free: %s", ranks, a.free, a.Slots,
			strings.Join(others, ", "))
	}
	a.free -= ranks
	a.by[run] += ranks
	return nil
}

func (a *Agent) release(run string, ranks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += ranks
	if a.by[run] -= ranks; a.by[run] == 0 {
		delete(a.by, run)
	}
}
