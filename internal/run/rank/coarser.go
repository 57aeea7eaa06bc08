package rank

import (
	"context"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/run/outputs"
	"jacobi/solver"
)

// coarserMeshes is the number of coarser meshes whose solutions tell the mesh's own error: half and quarter.
const coarserMeshes = 2

// solveCoarser solves the job's problem on half and quarter of its mesh, one after the other, by runs of their own
// without files. They do not change the bits of the job: it starts as it would without them. All ranks call it.
func (r *run) solveCoarser(ctx context.Context) (meshes outputs.Meshes, err error) {
	if !r.wantsCoarser() {
		return outputs.Meshes{Places: r.places}, nil
	}
	begin, c := time.Now(), r.Config
	var coarser []configs.Config
	for range coarserMeshes {
		half, ok := c.Halved()
		if !ok {
			break
		}
		c = half
		coarser = append(coarser, c)
	}
	switch why := r.problem.Bound(); {
	case why != "":
		meshes.Why = why
	case coarser == nil:
		meshes.Why = "half of the mesh has too few points"
	}
	if meshes.Why != "" {
		return meshes, nil
	}
	if err := r.keepGPU(ctx); err != nil {
		return meshes, err
	}
	meshes.Places, err = outputs.PlacesOf(r.problem, coarser[len(coarser)-1].Grid, r.Config.Output.Probes)
	if err != nil {
		return meshes, err
	}
	for i, c := range coarser {
		if !r.problem.InitialHolds() || r.values != nil {
			c.Problem.Initial = "0"
		}
		c.Output, c.Checkpoint, c.View.Listen = configs.Output{Results: true}, configs.Checkpoint{}, ""
		solved, end, why, err := r.solveStage(ctx, c, fmt.Sprintf("mesh %d", i+1), meshes.Places)
		if why == "" && end.Reason != solver.Converged && end.Reason != solver.Stalled {
			why = "the cycles did not reach the tolerance"
		}
		if err != nil {
			return meshes, fmt.Errorf("on the coarser mesh of %d x %d points: %w", c.Grid.NX, c.Grid.NY, err)
		}
		if why != "" {
			if i == 0 {
				meshes.Why = fmt.Sprintf("on half of the mesh, %d x %d points, %s", c.Grid.NX, c.Grid.NY, why)
			}
			break
		}
		meshes.Coarser = append(meshes.Coarser, solved)
	}
	meshes.Time = time.Since(begin)
	return meshes, nil
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
	all, err := r.gpus.Driver.Devices()
	if err != nil {
		return err
	}
	kept, err := all[r.chosen.Index].Retain(driver.ScheduleAuto)
	if err != nil {
		return r.onGPU(err)
	}
	r.open.add(kept.Close)
	return nil
}
