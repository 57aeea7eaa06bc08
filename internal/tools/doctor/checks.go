package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/view"
	"jacobi/internal/run/hosts"
	"jacobi/internal/run/plan"
	"jacobi/internal/tools/examine"
)

// Remedies.
const (
	correctKey = "correct the key or flag; launcher --dry-run prints all keys"
	fewerRanks = "ask for fewer ranks with -np, or give more places: --host, --hostfile, or agents (launcher node) " +
		"at nats.url"
	bothBuilt   = "build both programs (make build) and keep them in one folder"
	startServer = "start a server there, or correct nats.url and the key of its user: nats.password_file, creds, " +
		"nkey or cert, and ca"
	otherPort = "end the program that has the port, or name another address of this machine; port 0 is any free one"
	reachable = "ssh HOST has to work without a question, and both programs, of this version, to be there in " +
		"--remote-bin"
)

// checkSections checks the sections of cfg that need no plan and have no fault among faults. It serves a run whose keys
// or places allow no plan.
func checkSections(ctx context.Context, cfg configs.Config, faults []Finding) (more []Finding) {
	sound := func(sections ...string) bool {
		return !slices.ContainsFunc(slices.Concat(faults, more), func(f Finding) bool {
			return slices.ContainsFunc(sections, func(s string) bool { return strings.HasPrefix(f.What, s+".") })
		})
	}
	if sound("grid", "problem") {
		prob, err := problem.New(ctx, cfg)
		if err == nil {
			err = prob.Close()
		}
		more = append(more, faultsOf(err, plan.CorrectProblem)...)
	}
	if sound("output") && len(cfg.Output.Names()) > 0 {
		more = append(more, faultsOf(output.CheckDir(cfg.Output.Dir), plan.CorrectOutput)...)
	}
	if sound("nats") {
		more = append(more, checkServer(ctx, cfg.NATS)...)
	}
	if sound("metrics", "view") {
		more = append(more, checkPorts(cfg)...)
	}
	return more
}

// checkPorts opens the ports that the launcher would open for others, all at once as in a run, and closes them.
func checkPorts(cfg configs.Config) (faults []Finding) {
	if cfg.Metrics.Listen != "" {
		s, err := metrics.Listen(cfg.Metrics.Listen, metrics.NewRun())
		if err == nil {
			defer s.Close()
		}
		faults = append(faults, faultsOf(err, otherPort)...)
	}
	if cfg.View.Listen != "" {
		s, err := view.Listen(cfg.View.Listen)
		if err == nil {
			defer s.Close(0)
		}
		faults = append(faults, faultsOf(err, otherPort)...)
	}
	return faults
}

// checkServer tests the NATS server that the user named, if any.
func checkServer(ctx context.Context, n configs.NATS) []Finding {
	if n.URL == "" {
		return nil
	}
	conn, err := wire.Connect(ctx, wire.Options{Server: n, Name: "jacobi launcher (doctor)",
		Timeout: hosts.ConnectTimeout, Logger: zap.NewNop()})
	if err != nil {
		return faultsOf(fmt.Errorf("nats.url: %w", err), startServer)
	}
	conn.Close()
	return nil
}

// checkHosts tests whether the hosts answer.
func checkHosts(ctx context.Context, p *plan.Plan, m hosts.Means) []Finding {
	reached, err := hosts.Reach(ctx, p.Places, m)
	if err != nil {
		return faultsOf(err, reachable)
	}
	return faultsOf(reached.Close(), "check that the host is up")
}

// checkPlan returns the faults of p.
func checkPlan(ctx context.Context, p *plan.Plan) (faults []Finding) {
	for _, f := range p.Faults(ctx, true) {
		faults = append(faults, faultsOf(f.Err, f.Do)...)
	}
	return faults
}

// measureOutput measures output.dir; nil if the run writes no files.
func measureOutput(p *plan.Plan) (*examine.Place, error) {
	o := p.Config.Output
	if len(o.Names()) == 0 {
		return nil, nil
	}
	room, err := p.Room()
	if err != nil {
		return nil, err
	}
	place, err := examine.Place{Key: "output.dir", Dir: o.Dir, Needed: room.Bytes()}.Measure()
	if err != nil {
		return nil, fmt.Errorf("output.dir %q: %w", o.Dir, err)
	}
	return place, nil
}
