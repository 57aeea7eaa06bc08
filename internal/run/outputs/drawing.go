package outputs

import (
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// drawing is a picture that is drawn while files are written to disk.
type drawing struct {
	done chan struct{}
	data []byte // once done is closed
	err  error
}

// draw begins to draw the picture of the whole field.
func (o *Outputs) draw(t *output.Thumbnail, result solver.Result) *drawing {
	d := &drawing{done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.data, d.err = output.EncodePicture(o.Config.Output.Picture, t, o.caption(result))
	}()
	return d
}

// wait returns the picture, encoded.
func (d *drawing) wait() ([]byte, error) {
	<-d.done
	return d.data, d.err
}

// caption returns what pictures show besides the field.
func (o *Outputs) caption(result solver.Result) output.Caption {
	return output.Caption{
		Title: o.Problem.Name(), Sweeps: result.Iterations, Step: o.Config.Solver.Step(),
		Norm: result.Norm, Scale: o.Config.Output.PictureScale, Contours: o.Config.Output.Contours,
		Stalled:     result.Reason == solver.Stalled,
		Interrupted: result.Reason == solver.Interrupted,
		Outlines:    o.outlines,
	}
}
