package film

import (
	"bytes"
	"context"
	"image/gif"
	"testing"
	"time"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// zeros is a field of zeros.
type zeros struct{}

func (zeros) CopyRows(_ context.Context, _ solver.Stripe, dst []byte) error { clear(dst); return nil }
func (zeros) Row(_ int, dst []byte) error                                   { clear(dst); return nil }

// Every sample is a frame, and so is the field of the end, unless it was sampled already.
func TestFilmEndsWithTheLastField(t *testing.T) {
	for _, c := range []struct{ sweeps, frames int }{{20, 2}, {25, 3}} {
		comm, err := roster.Join(t.Context(), nil, roster.Member{Identity: roster.Identity{RunID: "test", Size: 1,
			LocalSize: 1}}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer comm.Close()
		mesh := solver.Mesh{NX: 18, NY: 18, DType: solver.Float32}
		f := New(Options{Comm: comm, View: output.View{Mesh: mesh, Stripe: mesh.Interior(), Rows: zeros{},
			Initial: zeros{}}, HX: 1, HY: 1, Every: 10, Timeout: time.Minute})
		defer f.Close()
		if every := f.Sampling().Every; every != 10 {
			t.Errorf("a sample every %d sweeps, want 10", every)
		}
		for _, sweeps := range []int{10, 20} {
			if err := f.Sample(t.Context(), solver.Sample{Sweeps: sweeps}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Finish(t.Context(), solver.Result{Iterations: c.sweeps}); err != nil {
			t.Fatal(err)
		}
		data, err := f.Frames.Encode("film.gif", output.Caption{Step: "sweep"})
		if err != nil {
			t.Fatal(err)
		}
		pictures, err := gif.DecodeAll(bytes.NewReader(data))
		if err != nil || len(pictures.Image) != c.frames || f.Frames.Last() != c.sweeps {
			t.Errorf("an end after %d sweeps: %d frames, the last of sweep %d (%v); want %d", c.sweeps,
				len(pictures.Image), f.Frames.Last(), err, c.frames)
		}
	}
}
