package doctor

import (
	"context"
	"fmt"

	"jacobi/configs"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// Run is a run to test.
type Run struct {
	Config  configs.Config
	Where   hosts.Where
	Environ []string // the launcher's environment
	// Starter returns how the ranks of a plan are started.
	Starter func(*plan.Plan) (attempt.Starter, error)
	Limit   attempt.Limit
	Screen  attempt.Screen // receives the lines of the ranks, which the diagnosis repeats
}

// Examine takes the steps of a run. It first makes all checks that need no ranks, so that it reports all their faults
// at once, and starts ranks only if there are none. Afterwards it removes what they made. It returns an error if it
// could not complete, not for a fault of the run; the error is a launch.ExitError if a signal or the limit ended it.
func Examine(ctx context.Context, run Run) (Diagnosis, error) {
	cfg, warnings := run.Config, strayVariables(run.Environ)
	defer examine.Undo(cfg.Output.Dir)()
	defer examine.Undo(cfg.Checkpoint.Dir)()
	p, faults := run.plan(ctx)
	if p == nil {
		return diagnosis(faults, warnings), nil
	}
	for _, text := range p.Notes {
		warnings = append(warnings, warning("give another file or grid.dtype if that is not meant", "%s", text))
	}
	if p.Idle != "" {
		warnings = append(warnings, warning(fmt.Sprintf("-np %d does the same", len(p.Ranks)), "%s", p.Idle))
	}
	planned := func(faults, warnings []Finding) Diagnosis {
		d := diagnosis(faults, warnings)
		d.Run = p.String()
		return d
	}
	starter, err := run.Starter(p)
	if err != nil {
		return planned(append(faults, faultsOf(err, bothBuilt)...), warnings), nil
	}
	faults = append(faults, checkPlan(ctx, p)...)
	expects := p.Expects(ctx)
	if expects.Warning != "" {
		warnings = append(warnings, Finding{expects.Warning, expects.Do})
	}
	faults = append(faults, checkServer(ctx, cfg.NATS)...)
	faults = append(faults, checkPorts(cfg)...)
	faults = append(faults, checkHosts(ctx, p, p.Means(starter.SSH, run.Screen.Say))...)
	if len(faults) > 0 {
		d := planned(faults, warnings)
		d.Faster = expects.Hint
		return d, nil
	}
	place, err := measureOutput(p)
	if err != nil {
		return Diagnosis{}, err
	}
	found, err := run.trial(ctx, p, starter)
	if err != nil {
		return Diagnosis{}, err
	}
	d := planned(found.faults, append(warnings, weigh(found.nodes, found.ranks)...))
	d.Faster, d.Output = expects.Hint, place
	d.Nodes, d.Ranks = append(d.Nodes, found.nodes...), append(d.Ranks, found.ranks...)
	return d, nil
}

// plan plans the run. If it cannot, it returns no plan, and checks what can be checked without one.
func (run Run) plan(ctx context.Context) (*plan.Plan, []Finding) {
	cfg := run.Config
	if err := configs.Validate(cfg); err != nil {
		faults := faultsOf(err, correctKey)
		return nil, append(faults, checkSections(ctx, cfg, faults)...)
	}
	at, err := run.Where.Place(ctx, cfg, run.Screen.Say)
	if err != nil {
		faults := faultsOf(err, fewerRanks)
		if run.Where.Agents { // the search for agents has tested the server
			cfg.NATS.URL = ""
		}
		return nil, append(faults, checkSections(ctx, cfg, faults)...)
	}
	p, err := plan.New(ctx, cfg, at)
	return p, faultsOf(err, "correct the key that it names")
}
