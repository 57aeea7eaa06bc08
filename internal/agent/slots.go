package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/launch"
)

// passed begins the names of variables that a launcher may set for ranks of an agent. Others could make the ranks' program
// another one.
var passed = []string{"JACOBI_", "CUDA_", "NVIDIA_", "GOMAXPROCS=", "GODEBUG=", "GOTRACEBACK=", "GOGC=", "GOMEMLIMIT="}

// prepare takes slots for the ranks of spec and makes it one for this node: its own program and its own way to the server.
func (a *Agent) prepare(ctx context.Context, spec *launch.Spec) (done func(), err error) {
	if len(spec.Ranks) == 0 {
		return nil, errors.New("no ranks are to be started")
	}
	env := make([]string, 0, len(spec.Env))
	for _, v := range spec.Env {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "JACOBI_NATS_") && name != "JACOBI_NATS_SECRET_FILE":
		case slices.ContainsFunc(passed, func(p string) bool { return strings.HasPrefix(v, p) }):
			env = append(env, v)
		default:
			return nil, fmt.Errorf("variable %s: an agent takes %s alone", name, strings.Join(passed, ", "))
		}
	}
	own := a.Server
	own.SecretFile = "" // the run's own was sent
	for _, v := range configs.Environ(configs.Config{NATS: own}) {
		if strings.HasPrefix(v, "JACOBI_NATS_") && !strings.HasPrefix(v, "JACOBI_NATS_SECRET_FILE=") {
			env = append(env, v)
		}
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
		return fmt.Errorf("%d slots are wanted, and %d of %d are free: %s", ranks, a.free, a.Slots, strings.Join(others, ", "))
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
