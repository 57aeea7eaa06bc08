package rank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/outputs"
	"jacobi/solver"
)

// coarserMeshes is the number of coarser meshes whose solutions tell the mesh's own error: half and quarter.
const coarserMeshes = 2

// solveCoarser solves the job's problem on half and quarter of its mesh, one after the other, by runs of their own
// without files. They do not change the bits of the job: it starts as it would without them. All ranks call it.
func (r *run) solveCoarser(ctx context.Context) error {
	if !r.wantsCoarser() {
		return nil
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
		r.meshes.Why = why
	case coarser == nil:
		r.meshes.Why = "half of the mesh has too few points"
	}
	if r.meshes.Why != "" {
		return nil
	}
	if err := r.keepGPU(ctx); err != nil {
		return err
	}
	places, err := outputs.PlacesOf(r.problem, coarser[len(coarser)-1].Grid, r.Config.Output.Probes)
	if err != nil {
		return err
	}
	r.meshes.Places = places
	for i, c := range coarser {
		solved, why, err := r.onMesh(ctx, c, fmt.Sprintf("mesh %d", i+1))
		if err != nil {
			return fmt.Errorf("on the coarser mesh of %d x %d points: %w", c.Grid.NX, c.Grid.NY, err)
		}
		if why != "" {
			if i == 0 {
				r.meshes.Why = fmt.Sprintf("on half of the mesh, %d x %d points, %s", c.Grid.NX, c.Grid.NY, why)
			}
			break
		}
		r.meshes.Coarser = append(r.meshes.Coarser, solved)
	}
	r.meshes.Time = time.Since(begin)
	return nil
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

// onMesh solves the problem of the job on another mesh, of c. why says, on all ranks, why there is no solution.
func (r *run) onMesh(ctx context.Context, c configs.Config, name string) (s outputs.Solved, why string, err error) {
	c.Output = configs.Output{Results: true}
	c.Checkpoint, c.View.Listen = configs.Checkpoint{}, ""
	if !r.problem.InitialHolds() {
		c.Problem.Initial = "0"
	}
	on := *r.session
	on.Config, on.Origin.Identity, on.share = c, r.id, r.cores
	on.Ordered, on.Stats, on.Watch, on.Check = true, false, nil, nil
	comm := r.comm.Stage(name)
	defer comm.Close()
	coarse := on.newRun(configs.Planned{Config: c, Contents: r.planned})
	coarse.ctx, coarse.coarse = comm.Context(), true
	coarse.keepOn = func() bool { return true }
	coarse.meshes.Places = r.meshes.Places
	defer coarse.open.close()
	err = coarse.enter(coarse.ctx, comm)
	if refused, ok := errors.AsType[*roster.RefusedError](err); ok {
		return s, refused.Text, nil
	}
	if err != nil {
		return s, "", err
	}
	if err := coarse.checkWhole(); err != nil {
		return s, err.Error(), nil
	}
	w, err := coarse.work(coarse.ctx)
	if err != nil {
		return s, "", err
	}
	if w.result.Reason != solver.Converged && w.result.Reason != solver.Stalled {
		return s, "the cycles did not reach the tolerance", nil
	}
	if coarse.idle() {
		return s, "", nil
	}
	return outputs.Solved{Mesh: output.NewMeshReport(coarse.problem.Mesh()), Report: w.report,
		Values: coarse.outputs.Values()}, "", nil
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
