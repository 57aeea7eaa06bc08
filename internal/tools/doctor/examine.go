// Package doctor tests whether a run would start: it takes the steps of the run up to its first sweep and collects the
// faults and warnings with their remedies.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/attempt"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/launch"
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
	for _, f := range p.Faults(ctx, true) {
		faults = append(faults, faultsOf(f.Err, f.Do)...)
	}
	for _, text := range p.Remarks() { // some follow from the check for faults
		warnings = append(warnings, warning("change the keys or the file that it is about if that is not meant", "%s",
			text))
	}
	if p.Idle != "" {
		warnings = append(warnings, warning(fmt.Sprintf("-np %d does the same", len(p.Placements)), "%s", p.Idle))
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

// findings are what ranks have found.
type findings struct {
	faults []Finding
	nodes  []Node
	ranks  []examine.Rank // those that have reported
}

// trial starts the ranks of p and returns what they found.
func (run Run) trial(ctx context.Context, p *plan.Plan, starter attempt.Starter) (findings, error) {
	published := make([]examine.Rank, len(p.Placements)) // when one of them fails
	collect := func(e roster.Event) {
		var r examine.Rank
		if e.Kind == roster.Examined && e.Rank >= 0 && e.Rank < len(published) && json.Unmarshal(e.Report, &r) == nil {
			published[e.Rank] = r
		}
	}
	end, err := attempt.Run(ctx, p, attempt.Options{Starter: starter, Limit: run.Limit, Screen: run.Screen,
		Task: configs.Task{Examine: true}, Show: func() (func(roster.Event), func()) { return collect, nil }})
	if err != nil {
		return findings{faults: faultsOf(err, "correct it on the host that it names")}, nil
	}
	return conclude(p, end.Outcome, published)
}

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
	unknown := func(r examine.Rank) bool { return r.Rank < 0 || r.Rank >= len(p.Placements) }
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
			faults = append(faults, faultsOf(fmt.Errorf("rank %d on %s: %s", r.Rank,
				p.Placements[r.Rank].Host, r.Fault),
				"correct it on that host, or run elsewhere")...)
		}
	}
	return faults
}

// Diagnosis says whether a run would start.
type Diagnosis struct {
	Starts   bool           `json:"starts"`
	Run      string         `json:"run,omitempty"`    // description; "" if the run could not be planned
	Faster   string         `json:"faster,omitempty"` // a method that would be much faster
	Version  string         `json:"version"`          // version of this launcher
	Faults   []Finding      `json:"faults"`
	Warnings []Finding      `json:"warnings"`
	Nodes    []Node         `json:"nodes"`
	Ranks    []examine.Rank `json:"ranks"`
	// Output is output.dir, as this machine sees it; nil if the run writes no files.
	Output *examine.Place `json:"output,omitempty"`
}

// Finding is a fault or a warning with its remedy.
type Finding struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// diagnosis returns the diagnosis of a run that was not planned, or whose ranks were not started. Each fault counts
// once.
func diagnosis(faults, warnings []Finding) Diagnosis {
	d := Diagnosis{Version: version.String(), Faults: []Finding{}, Warnings: append([]Finding{}, warnings...),
		Nodes: []Node{}, Ranks: []examine.Rank{}}
	for _, f := range faults {
		known := func(k Finding) bool { return k.What == f.What }
		if !slices.ContainsFunc(d.Faults, known) {
			d.Faults = append(d.Faults, f)
		}
	}
	d.Starts = len(d.Faults) == 0
	return d
}

// Refused returns the diagnosis of a run whose keys or flags were refused with err.
func Refused(err error, environ []string) Diagnosis {
	return diagnosis(faultsOf(err, correctKey), strayVariables(environ))
}

// faultsOf returns a fault for each line of err; none if err is nil.
func faultsOf(err error, do string) (faults []Finding) {
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(show.Values(err.Error()), "\n") {
		faults = append(faults, Finding{line, do})
	}
	return faults
}

// warning returns a warning.
func warning(do, format string, args ...any) Finding {
	return Finding{fmt.Sprintf(format, args...), do}
}

// strayVariables warns of variables of environ that look like a key's but are not.
func strayVariables(environ []string) (warnings []Finding) {
	for _, text := range plan.StrayVariables(environ) {
		warnings = append(warnings, Finding{text, "unset it, or set the variable that was meant"})
	}
	return warnings
}
