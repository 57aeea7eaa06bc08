package outputs

import (
	"context"

	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// film collects pictures of the field for the animation. Each rank averages its rows while the sweeps wait, and rank 0
// adds them up beside them. The pictures are drawn after the run.
type film struct {
	*Outputs
	frames output.Animation // rank 0 only
	pace   output.Pace
	last   int // sweeps of the newest frame; -1 if there is none
}

func (f *film) take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error) {
	frame, thin := f.pace.Next()
	if !frame {
		return nil, nil
	}
	return f.add(ctx, at, thin)
}

// add adds a frame.
func (f *film) add(ctx context.Context, at solver.Sample, thin bool) (rest func(context.Context) error, err error) {
	hx, hy := f.Problem.Spacings()
	own := output.NewFrame(f.Layout.Mesh, hx, hy)
	if err := f.seen().Each(ctx, own.AddRows); err != nil {
		return nil, err
	}
	f.last = at.Sweeps
	return func(ctx context.Context) error {
		whole, err := own.MergeAll(ctx, f.Comm.Gather, "animation", f.id.Rank)
		if err != nil || whole == nil {
			return err
		}
		return f.frames.Add(at.Sweeps, at.Norm, whole, thin)
	}, nil
}

// finish adds the field of the end, if it is not the last frame already.
func (f *film) finish(ctx context.Context, result solver.Result) error {
	if f.last == result.Iterations {
		return nil
	}
	rest, err := f.add(ctx, solver.Sample{Sweeps: result.Iterations, Norm: result.Norm}, false)
	if err == nil {
		err = rest(ctx)
	}
	return err
}
