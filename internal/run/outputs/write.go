package outputs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
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
	var uses []output.Use
	hashes, figures, places := o.newHashes(), o.newFigures(), o.newPlaces()
	defer figures.wait()
	if hashes != nil {
		uses = append(uses, hashes.Add)
	}
	if figures != nil {
		uses = append(uses, figures.add)
	}
	if places != nil {
		uses = append(uses, places.add)
	}
	picture, fault, err := o.writeRows(ctx, s.view, uses, result)
	if err != nil {
		return nil, err
	}
	found, err := figures.finish(ctx, s)
	if err != nil {
		return nil, err
	}
	hash, err := o.fieldHash(ctx, hashes)
	if err != nil {
		return nil, err
	}
	fault = cmp.Or(fault, o.writeArrays(ctx, s))
	probed, err := o.readProbes(ctx)
	if err != nil {
		return nil, err
	}
	if o.values, err = o.gatherPlaces(ctx, places); err != nil {
		return nil, err
	}
	meshes, err := o.awaitMeshes(whole) // o.Timeout is for files
	if err != nil {
		return nil, err
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
	report := o.report(result, parts)
	report.FieldHash, report.Checkpoints = hash, checkpoints
	report.Results, report.Accuracy, report.Probed = found.results, o.accuracy(found, result), probed
	o.warnOfFloat32(found.results)
	o.stateMeshError(&report, meshes)
	o.stateMatrix(&report)
	if found.residual != nil {
		report.Residual = found.residual
	}
	if picture, err = o.miss(&report, found.fault, picture); err != nil {
		return nil, err
	}
	set := &outputSet{Outputs: o, report: &report}
	report.Times.Meshes += meshes.Time.Seconds()
	if err := set.finish(whole, picture, begin.Add(meshes.Time)); err != nil {
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
	uses []output.Use, result solver.Result) (picture drawing, fault, err error) {
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

// drawing waits for a picture that is drawn while files are written to disk, and returns it encoded.
type drawing func() ([]byte, error)

// draw begins to draw the picture of the whole field.
func (o *Outputs) draw(t *output.Thumbnail, result solver.Result) drawing {
	wait := sync.OnceValues(func() ([]byte, error) {
		return output.EncodePicture(o.Config.Output.Picture, t, o.caption(result))
	})
	go func() { _, _ = wait() }()
	return wait
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

// report combines the parts of all ranks into the report of the run. Rank 0 calls it.
func (o *Outputs) report(result solver.Result, parts []output.RankReport) output.Report {
	c, times, mesh := o.Config.Solver, result.Times, o.Layout.Mesh
	rep := o.Report
	rep.Ranks, rep.Sweeps, rep.StopReason = parts, result.Iterations, result.Reason
	rep.Converged, rep.Verdict = result.Reason == solver.Converged, c.Verdict(result.Reason)
	rep.Times = output.TimesReport{Setup: (o.readyAt.Sub(rep.Started) - o.MeshTime - o.Conductors.Time).Seconds(),
		Meshes: o.MeshTime.Seconds(), Regions: o.Conductors.Time.Seconds(),
		Sweeps: times.Total.Seconds(), Samples: times.Sample.Seconds()}
	rep.GLUPS = output.GLUPS(mesh, c.Entry().SweepsPerIteration*(result.Iterations-o.Start), times.Total.Seconds())
	if d := result.Decisive; d != nil {
		rep.Decisive = &output.DecisiveReport{Sweep: d.Sweep, Norm: d.Norm}
	}
	if c.RelativeTolerance > 0 {
		rep.Base = result.Base
	}
	if !math.IsNaN(result.Norm) {
		rep.Norm = &result.Norm
		if c.NormEvery > 1 {
			rep.NormSweep = new(o.lastNormed(result))
		}
		if d := o.Problem.Diagonal(); d > 0 {
			rep.Residual = output.NewResidual(result.Norm, rep.Base, d)
		}
	}
	return rep
}

// lastNormed returns the last sweep that has a norm.
func (o *Outputs) lastNormed(result solver.Result) int {
	return o.Layout.Norms.Sweep(o.Layout.Norms.In(result.Iterations) - 1)
}

// lack notes why this rank has no part in an output besides the field.
func (o *Outputs) lack(name string, why error) {
	if o.lacks == nil {
		o.lacks = map[string]string{}
	}
	if o.lacks[name] == "" {
		o.lacks[name] = why.Error()
	}
}

// miss enters in the report what ranks have no part in: results, if that fault says so, and outputs that ranks lack,
// whose files are given up. It returns the picture, or one that fails.
func (o *Outputs) miss(report *output.Report, results string, picture drawing) (drawing, error) {
	if results != "" {
		report.Missing = append(report.Missing, output.FileFault{Name: "results", Error: results})
	}
	lacks := map[string]string{}
	for _, k := range report.Ranks {
		for name, why := range k.Missing {
			if lacks[name] == "" {
				lacks[name] = fmt.Sprintf("rank %d on %s: %s", k.Rank, k.Host, why)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		fault := output.FileFault{Name: name, Error: lacks[name]}
		i := slices.IndexFunc(o.arrays, func(a *array) bool { return o.titleOf(a) == name && a.file != nil })
		switch {
		case name == o.Config.Output.Picture:
			picture = func() ([]byte, error) { return nil, errors.New(fault.Error) }
		case i >= 0:
			report.Failed = append(report.Failed, fault)
			if err := o.arrays[i].file.Abort(); err != nil {
				return nil, err
			}
			o.arrays[i].file = nil
		default:
			report.Missing = append(report.Missing, fault)
		}
	}
	return picture, nil
}
