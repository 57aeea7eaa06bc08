package rank

import (
	"context"

	"jacobi/internal/output"
	"jacobi/solver"
)

// animation is a solver.Sampler that collects pictures of the field. Each rank averages its rows while the sweeps wait,
// and rank 0 adds them up beside the sweeps. The pictures are drawn after the run.
type animation struct {
	*ready
	beside
	pace   output.Pace
	frames output.Animation // rank 0 only; not while a frame is added
	last   int              // sweeps of the newest frame; -1 if there is none
}

// addAnimation makes the run collect pictures if the configuration wants an animation.
func (r *ready) addAnimation(open *closers) {
	c := r.Config.Output
	if c.Animation == "" {
		return
	}
	r.animation = &animation{ready: r, beside: r.newBeside("animation"), last: -1}
	open.add(r.animation.close)
	r.samples = append(r.samples, solver.Sampling{Sampler: r.animation, Every: c.AnimationInterval().Sweeps})
}

// Sample implements solver.Sampler.
func (a *animation) Sample(ctx context.Context, at solver.Sample) error {
	frame, thin := a.pace.Next()
	if !frame {
		return nil
	}
	return a.add(ctx, at, thin)
}

// add adds a frame.
func (a *animation) add(ctx context.Context, at solver.Sample, thin bool) error {
	if err := a.wait(ctx); err != nil {
		return err
	}
	own := output.NewFrame(a.layout.Mesh)
	if err := a.view().Each(ctx, own.AddRows); err != nil {
		return err
	}
	a.last = at.Sweeps
	a.do(func(ctx context.Context) error {
		ctx, cancel := a.withFileTimeout(ctx)
		defer cancel()
		whole, err := a.mergePicture(ctx, "animation", own)
		if err != nil || a.id.Rank != 0 {
			return err
		}
		return a.frames.Add(at.Sweeps, at.Norm, whole, thin)
	})
	return nil
}

// finish adds the field of the end, if it is not the last frame already.
func (a *animation) finish(ctx context.Context, result solver.Result) error {
	if a == nil {
		return nil
	}
	if a.last != result.Sweeps {
		if err := a.add(ctx, solver.Sample{Sweeps: result.Sweeps, Norm: result.Norm}, false); err != nil {
			return err
		}
	}
	return a.wait(ctx)
}
