package outputs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
)

// Write writes all files and, on rank 0, publishes the report and returns it. If a file cannot be written, the report
// says so, and the others are written all the same. own returns this rank's part of the report, and checkpoints is in
// the report as it is. All ranks call Write.
func (o *Outputs) Write(ctx context.Context, result solver.Result, checkpoints *output.CheckpointReport,
	own func() output.RankReport) (*output.Report, error) {
	begin, whole := time.Now(), ctx
	ctx, cancel := o.within(ctx)
	defer cancel()
	s, err := o.meet(ctx)
	if err != nil {
		return nil, err
	}
	hash, err := o.startHash(s) // nothing where no hash is wanted
	if err != nil {
		return nil, err
	}
	uses, figures := hash.uses(s.view), o.newFigures()
	if figures != nil {
		uses = append(uses, figures.add)
	}
	picture, fault, err := o.writeRows(ctx, s.view, uses, result)
	if err != nil {
		return nil, err
	}
	found, err := figures.finish(ctx, s)
	if err != nil {
		return nil, err
	}
	digest, err := o.digest(ctx, s.view, hash)
	if err != nil {
		return nil, err
	}
	digest, unwritten, err := o.writeArrays(ctx, s, digest)
	if err != nil {
		return nil, err
	}
	fault = cmp.Or(fault, unwritten)
	var probed output.Probed
	if o.Many {
		if probed, err = o.readProbes(ctx); err != nil {
			return nil, err
		}
	}
	gathering, part := time.Now(), own()
	part.Missing = o.lacks
	if fault != nil {
		part.OutputError = fault.Error()
	}
	parts, err := roster.GatherOn(ctx, o.Comm, "reports", part)
	if err != nil {
		return nil, err
	}
	o.Tracer.Phase(trace.PhaseReports, gathering)
	if o.id.Rank != 0 {
		o.sendTrace(whole)
		return nil, nil
	}
	sum, file := "", ""
	if digest != nil {
		sum, file = digest.Sums()
	}
	report := o.report(result, parts)
	report.FieldSHA256, report.Checkpoints = sum, checkpoints
	report.Results, report.Accuracy, report.Probed = found.results, o.accuracy(found, result), probed
	if found.residual != nil {
		report.Residual = found.residual
	}
	if picture, err = o.miss(&report, found.fault, picture); err != nil {
		return nil, err
	}
	set := &outputSet{Outputs: o, result: result, report: &report}
	if err := set.finish(whole, picture, file, begin); err != nil {
		return nil, err
	}
	if o.Many {
		return &report, nil
	}
	return &report, o.publish(report)
}

// writeRows writes this rank's rows to the field, averages them for the picture, and gives them to uses, all at once.
// On rank 0 it begins to draw the whole picture. fault says why the rows are not in the field.
func (o *Outputs) writeRows(ctx context.Context, view output.View,
	uses []output.Use, result solver.Result) (picture *drawing, fault, err error) {
	defer o.Tracer.Phase(trace.PhaseRows, time.Now())
	c := o.Config.Output
	hx, hy := o.Problem.Spacings()
	thumbnail := output.NewThumbnail(o.Layout.Mesh, hx, hy)
	if c.Picture != "" {
		uses = append(uses, o.average(thumbnail))
	}
	if c.Field != "" {
		uses = append(uses, func(lo int, rows []byte) error {
			if fault == nil {
				fault = o.rows.WriteRows(lo, rows)
			}
			return nil
		})
	}
	if uses != nil {
		if err := view.Each(ctx, uses...); err != nil {
			return nil, nil, err
		}
	}
	if c.Picture != "" {
		whole, err := thumbnail.MergeAll(ctx, o.Comm.Gather, "picture", o.id.Rank)
		if err != nil {
			return nil, nil, err
		}
		if whole != nil {
			picture = o.draw(whole, result)
		}
	}
	if o.rows != nil {
		if err := o.rows.Close(); fault == nil {
			fault = err
		}
		o.rows = nil // Abort has nothing to abandon any more
	}
	return picture, fault, nil
}

// publish sends the report to the launcher. A report that is too large for a message, as one of hundreds of ranks may
// be, stays behind: the launcher then reads its file.
func (o *Outputs) publish(report output.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	e := roster.Event{Kind: roster.Finished, Verdict: string(report.Verdict), Report: b}
	err = o.Comm.Publish(e)
	if errors.Is(err, nats.ErrMaxPayload) {
		e.Report = nil
		err = o.Comm.Publish(e)
	}
	return err
}

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
