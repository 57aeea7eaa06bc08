package rank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/outputs"
	"jacobi/solver"
)

// coarserMeshes is the number of coarser meshes whose solutions tell the mesh's own error: half and quarter.
const coarserMeshes = 2

// coarser are the solutions on coarser meshes: where they are compared with the job's, and what waits for them.
type coarser struct {
	places *outputs.Places
	await  func(context.Context) (outputs.Meshes, error)
	time   time.Duration // that the job has waited for them before its set-up
}

// solveCoarser solves the job's problem on half and quarter of its mesh, one after the other, by runs of their own
// without files. They do not change the bits of the job. A rank alone on a GPU solves them beside the job, if the GPU
// has the memory: for most of a run's time the GPU waits for the host. With several ranks, kernels of two runs could
// wait for each other, and on a CPU both would wait for cores. All ranks call it.
func (r *divided) solveCoarser(ctx context.Context) (c coarser, err error) {
	if !r.wantsCoarser() {
		return coarser{places: r.places}, nil
	}
	begin := time.Now()
	meshes, why := r.coarserConfigs()
	if why != "" {
		c.await = already(outputs.Meshes{Why: why})
		return c, nil
	}
	if err := r.keepGPU(ctx); err != nil {
		return c, err
	}
	c.places, err = outputs.PlacesOf(r.problem, meshes[len(meshes)-1].Grid, r.Config.Output.Probes)
	if err != nil {
		return c, err
	}
	beside, err := r.roomBeside()
	if err != nil {
		return c, err
	}
	if beside {
		c.await = r.solveBeside(ctx, meshes, c.places)
		return c, nil
	}
	solved, err := r.solveEach(ctx, meshes, c.places)
	c.await, c.time = already(solved), time.Since(begin)
	return c, err
}

// already returns a coarser.await for what is there already.
func already(m outputs.Meshes) func(context.Context) (outputs.Meshes, error) {
	return func(context.Context) (outputs.Meshes, error) { return m, nil }
}

// coarserConfigs returns the configurations of the coarser meshes, the finest first, or why there are none.
func (r *divided) coarserConfigs() (meshes []configs.Config, why string) {
	if why := r.problem.Bound(); why != "" {
		return nil, why
	}
	c := r.Config
	for range coarserMeshes {
		half, ok := c.Halved()
		if !ok {
			break
		}
		c = half
		meshes = append(meshes, c)
	}
	if meshes == nil {
		return nil, "half of the mesh has too few points"
	}
	for i := range meshes {
		c := &meshes[i]
		if !r.problem.InitialHolds() || r.values != nil {
			c.Problem.Initial = "0"
		}
		c.Output, c.Checkpoint, c.View.Listen = configs.Output{Results: true}, configs.Checkpoint{}, ""
	}
	return meshes, ""
}

// roomBeside reports whether this rank is the only one of the job and of its GPU, which has memory for the job and,
// with room to spare, for half of its mesh beside it.
func (r *divided) roomBeside() (bool, error) {
	if r.working > 1 || !r.sole {
		return false, nil
	}
	need, err := r.Bytes(r.Config, r.id.Rank, r.device(), r.cpuOptions())
	if err != nil {
		return false, err
	}
	free, err := r.freeMemory()
	return need+need/2 <= free, err
}

// freeMemory returns the bytes that are free of the GPU's memory.
func (r *run) freeMemory() (free int64, err error) {
	c, err := r.gpus.Devices[r.chosen.Index].Retain(driver.ScheduleAuto)
	if err != nil {
		return 0, r.onGPU(err)
	}
	defer func() { err = errors.Join(err, r.onGPU(c.Close())) }()
	if err := c.Bind(); err != nil {
		return 0, r.onGPU(err)
	}
	free, _, err = c.Memory()
	return free, r.onGPU(errors.Join(err, c.Unbind()))
}

// solveBeside begins solveEach and returns what waits for it. The job's closers end it. Its faults are no faults of the
// job, whose cycles may be done by then: the report says why nothing is known.
func (r *divided) solveBeside(ctx context.Context, meshes []configs.Config, places *outputs.Places) func(
	context.Context) (outputs.Meshes, error) {
	var solved outputs.Meshes
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if solved, err = r.solveEach(ctx, meshes, places); errors.Is(err, roster.ErrStopped) {
			solved.Why = stoppedBefore
		} else if err != nil {
			solved.Why = err.Error()
		}
	}()
	r.open.add(func() error { cancel(); <-done; return nil })
	return func(ctx context.Context) (outputs.Meshes, error) {
		begin := time.Now()
		select {
		case <-done:
			solved.Time = time.Since(begin)
			return solved, nil
		case <-ctx.Done():
			return outputs.Meshes{}, context.Cause(ctx)
		}
	}
}

// stoppedBefore is why a coarser mesh has no solution.
const stoppedBefore = "the run was stopped"

// solveEach solves the problem on coarser meshes, one after the other.
func (r *run) solveEach(ctx context.Context, meshes []configs.Config, places *outputs.Places) (all outputs.Meshes,
	err error) {
	for i, c := range meshes {
		solved, end, why, err := r.solveStage(ctx, c, fmt.Sprintf("mesh %d", i+1), places)
		switch {
		case err != nil:
			return all, fmt.Errorf("on the coarser mesh of %d x %d points: %w", c.Grid.NX, c.Grid.NY, err)
		case why != "" || end.Reason == solver.Converged || end.Reason == solver.Stalled:
		case end.Reason == solver.Interrupted:
			why = stoppedBefore
		default:
			why = "the cycles did not reach the tolerance"
		}
		if why != "" {
			if i == 0 {
				all.Why = fmt.Sprintf("on half of the mesh, %d x %d points, %s", c.Grid.NX, c.Grid.NY, why)
			}
			break
		}
		all.Coarser = append(all.Coarser, solved)
	}
	return all, nil
}

// wantsCoarser reports whether the run states the mesh's own error.
func (r *run) wantsCoarser() bool {
	c := r.Config
	switch {
	case r.coarse || !c.Solver.Entry().Levels || !c.Output.Results:
		return false
	case c.Solver.MeshError == configs.Auto:
		return c.Solver.Tolerance > 0 || c.Solver.RelativeTolerance > 0
	}
	return c.Solver.MeshError == "on"
}

// keepGPU takes this rank's GPU, if one sweeps, and keeps its context until the job ends.
func (r *run) keepGPU(ctx context.Context) error {
	if r.taken { // the session keeps it
		return nil
	}
	if err := r.takeGPU(ctx); err != nil || !r.sweepsOnGPU() {
		return err
	}
	kept, err := r.gpus.Devices[r.chosen.Index].Retain(driver.ScheduleAuto)
	if err != nil {
		return r.onGPU(err)
	}
	r.open.add(kept.Close)
	return nil
}
