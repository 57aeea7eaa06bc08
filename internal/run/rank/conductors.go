package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// Regions that float get their values, and output.matrix its numbers, from solutions of the same problem in which one
// region is at 1 and all else at 0: stages of the run, whose fluxes are kept for later runs of the session.

const (
	// exactly is the relative tolerance of these solutions, and enough the one that they have to meet at least.
	exactly = 1e-12
	enough  = 1e-8
	// grounded stands for the solution in which nothing but the regions that float is at 0.
	grounded = -1
	// mostFluxes bounds the solutions whose fluxes a session keeps.
	mostFluxes = 256
)

// names returns the names of the regions with values.
func (r *run) names() (names []string) {
	for _, c := range r.Config.Problem.Conductors() {
		names = append(names, c.Name)
	}
	return names
}

// excited returns the problem with a region at 1, or the one of grounded, and a key of its solution.
func (r *run) excited(region int) (c configs.Config, key string) {
	if region == grounded {
		c = r.Config.Grounded()
	} else {
		c = r.Config.Excited(region)
	}
	c.Output, c.Checkpoint, c.View.Listen = configs.Output{Results: true}, configs.Checkpoint{}, ""
	c.Solver.Tolerance, c.Solver.RelativeTolerance, c.Solver.DefaultTolerance = 0, exactly, true
	c.Solver.MaxIterations = configs.Default().Solver.MaxIterations
	document, err := configs.Document(configs.Planned{Config: c, Contents: r.planned})
	if err != nil {
		return c, "" // nothing is known of it
	}
	return c, string(document)
}

// fluxes returns the fluxes of the solutions for regions. why says, on all ranks, why there are none. All working ranks
// call it.
func (r *run) fluxes(ctx context.Context, regions []int) (all []results.Fluxes, why string, err error) {
	begin := time.Now()
	defer func() { r.conductors.Time += time.Since(begin) }()
	if err := r.keepGPU(ctx); err != nil {
		return nil, "", err
	}
	known, cases, keys := make([]*results.Fluxes, len(regions)), make([]configs.Config, len(regions)),
		make([]string, len(regions))
	for i, region := range regions {
		cases[i], keys[i] = r.excited(region)
		if f, ok := r.known[keys[i]]; ok {
			known[i] = &f
		}
	}
	wait, cancel := r.withFileTimeout(ctx)
	known, err = roster.BroadcastOn(wait, r.comm, "known fluxes", known)
	cancel()
	if err != nil {
		return nil, "", err
	}
	for i, region := range regions {
		if known[i] == nil {
			f, why, err := r.solveFor(ctx, cases[i], region)
			if err != nil || why != "" {
				return nil, why, err
			}
			known[i] = &f
		}
		all = append(all, *known[i])
		if len(r.known) >= mostFluxes {
			clear(r.known)
		}
		if keys[i] != "" {
			r.known[keys[i]] = *known[i]
		}
	}
	return all, "", nil
}

// solveFor returns the fluxes of the solution for a region, which is that of c.
func (r *run) solveFor(ctx context.Context, c configs.Config, region int) (f results.Fluxes, why string, err error) {
	names, name := r.names(), "with the floating regions at 0"
	if region != grounded {
		name = fmt.Sprintf("with %s at 1", names[region])
	}
	solved, end, why, err := r.solveStage(ctx, c, fmt.Sprintf("region %d", region), nil)
	own := r.Config.Solver
	met := end.Norm <= max(own.Tolerance, max(own.RelativeTolerance, enough)*end.Base)
	switch {
	case ctx.Err() != nil: // the faults of solutions follow from that
		return f, "", context.Cause(ctx)
	case err != nil:
		return f, "", fmt.Errorf("%s: %w", name, err)
	case why != "":
		return f, name + ": " + why, nil
	case end.Reason == solver.Interrupted:
		return f, "", roster.ErrStopped
	case end.Reason != solver.Converged && end.Reason != solver.Stalled && !met:
		return f, name + ": the cycles did not reach the tolerance", nil
	}
	var told struct {
		results.Fluxes
		Fault string `json:"fault"`
	}
	if r.id.Rank == 0 {
		if fault := solved.Report.Fault(); fault != nil {
			told.Fault = fault.Error()
		} else if told.Fluxes, err = results.FluxesOf(solved.Report.Results, names); err != nil {
			told.Fault = err.Error()
		}
	}
	wait, cancel := r.withFileTimeout(ctx)
	defer cancel()
	told, err = roster.BroadcastOn(wait, r.comm, "fluxes", told)
	return told.Fluxes, told.Fault, err
}

// floats returns the regions that float, and the fluxes into them.
func (r *run) floats() (regions []int, charges []float64) {
	for i, c := range r.Config.Problem.Conductors() {
		if c.Floating != nil {
			regions, charges = append(regions, i), append(charges, *c.Floating)
		}
	}
	return regions, charges
}

// knownValues returns the values of the regions that float, if the session knows all that they follow from.
func (r *run) knownValues() []float64 {
	regions, charges := r.floats()
	if len(regions) == 0 {
		return nil
	}
	var all []results.Fluxes
	for _, region := range append([]int{grounded}, regions...) {
		_, key := r.excited(region)
		f, ok := r.known[key]
		if !ok {
			return nil
		}
		all = append(all, f)
	}
	values, err := results.Values(r.names(), regions, charges, all[0], all[1:])
	if err != nil {
		return nil
	}
	return values
}

// float finds the values of the regions that float, and has the ranks agree on the problem with them. If there are no
// such values, all working ranks get the same *roster.RefusedError, and the idle ones, too.
func (r *run) float(ctx context.Context) error {
	regions, charges := r.floats()
	all, why, err := r.fluxes(ctx, append([]int{grounded}, regions...))
	if err != nil {
		return err
	}
	var values []float64
	if why == "" {
		if values, err = results.Values(r.names(), regions, charges, all[0], all[1:]); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		key := "problem.regions"
		if r.Config.Problem.Regions == "" {
			key = "problem.colours"
		}
		why = key + ": " + why
		data, err := json.Marshal(ending{Refused: why})
		if err == nil {
			err = r.comm.End(ctx, "end", data)
		}
		return errors.Join(err, &roster.RefusedError{Text: why})
	}
	again, done := r.stage(r.Config, "values")
	defer done()
	again.values = values
	if err := again.enter(again.ctx, again.comm); err != nil {
		return err
	}
	r.open.add(again.problem.Close)
	again.open.funcs = nil // the problem goes on
	r.problem, r.survey, r.values = again.problem, again.survey, values
	r.comm.TakeWhole(again.comm)
	return nil
}

// solveMatrix works out output.matrix. All working ranks call it.
func (r *run) solveMatrix(ctx context.Context) error {
	if !r.Config.Output.Matrix {
		return nil
	}
	names := r.names()
	var regions []int
	for i := range names {
		regions = append(regions, i)
	}
	all, why, err := r.fluxes(ctx, regions)
	switch {
	case errors.Is(err, roster.ErrStopped): // the run stops, too
	case err != nil:
		return fmt.Errorf("output.matrix: %w", err)
	case why == "":
		var fault error
		if r.conductors.Matrix, fault = results.NewMatrix(names, all); fault != nil {
			why = fault.Error()
		}
	}
	r.conductors.Why = why
	return nil
}
