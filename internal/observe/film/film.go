// Package film collects pictures of the field while a run goes on, for its animation.
package film

import (
	"context"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/background"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Options are what a Film takes of its run.
type Options struct {
	Comm    *roster.Comm
	View    output.View
	HX, HY  float64       // spacings of the mesh
	Every   int           // sweeps from one picture to the next
	Timeout time.Duration // of a step in which ranks wait for each other
}

// Film collects pictures. Each rank averages its rows while the sweeps wait, and rank 0 adds them up in the background.
// The pictures are drawn after the run.
type Film struct {
	background.Background
	Options
	Frames output.Animation // rank 0 only; not while a frame is added

	pace output.Pace
	last int // sweeps of the newest frame; -1 if there is none
}

// New returns a Film without pictures.
func New(o Options) *Film {
	return &Film{Background: background.New(o.Comm.Context(), "animation"), Options: o, last: -1}
}

// Sampling returns the samples that the film wants.
func (f *Film) Sampling() solver.Sampling { return solver.Sampling{Sampler: f, Every: f.Every} }

// Sample implements solver.Sampler.
func (f *Film) Sample(ctx context.Context, at solver.Sample) error {
	frame, thin := f.pace.Next()
	if !frame {
		return nil
	}
	return f.add(ctx, at, thin)
}

// add adds a frame.
func (f *Film) add(ctx context.Context, at solver.Sample, thin bool) error {
	if err := f.Wait(ctx); err != nil {
		return err
	}
	own := output.NewFrame(f.View.Mesh, f.HX, f.HY)
	if err := f.View.Each(ctx, own.AddRows); err != nil {
		return err
	}
	f.last = at.Sweeps
	f.Do(func(ctx context.Context) error {
		ctx, cancel := awake.WithTimeout(ctx, f.Timeout)
		defer cancel()
		whole, err := own.MergeAll(ctx, f.Comm.Gather, "animation", f.Comm.Self().Rank)
		if err != nil || whole == nil {
			return err
		}
		return f.Frames.Add(at.Sweeps, at.Norm, whole, thin)
	})
	return nil
}

// Finish adds the field of the end, if it is not the last frame already.
func (f *Film) Finish(ctx context.Context, result solver.Result) error {
	if f.last != result.Iterations {
		if err := f.add(ctx, solver.Sample{Sweeps: result.Iterations, Norm: result.Norm}, false); err != nil {
			return err
		}
	}
	return f.Wait(ctx)
}
