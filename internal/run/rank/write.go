package rank

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/compute/accuracy"
	"jacobi/internal/compute/results"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/internal/observe/trace"
	"jacobi/solver"
)

// written is the end of a rank.
type written struct {
	result solver.Result
	report *output.Report // of the run; rank 0 only
	held   *output.Held   // output.dir, on rank 0 of a run without a launcher; otherwise nil
	leave  func()         // called once the summary is printed; nil if ranks may end one by one
}

// write writes all files and publishes the report. If a file cannot be written, the report says so, and the others are
// written all the same. All ranks call it.
func (r *run) write(ctx context.Context) (written, error) {
	w, begin, whole := written{result: r.result, held: r.place.held}, time.Now(), ctx
	ctx, cancel := r.withFileTimeout(ctx)
	defer cancel()
	view := r.view()
	var tally *results.Tally
	var near *accuracy.Tally
	var rows *results.Rows
	if r.Config.Output.Results {
		tally = results.New(r.problem, r.layout.Stripe)
		near = accuracy.New(r.problem, r.layout.Stripe, r.levels == nil)
		rows = results.NewRows(r.problem, r.layout.Stripe, tally, near)
	}
	hash, err := r.startHash(ctx, view)
	if err != nil {
		return w, r.onGPU(err)
	}
	uses := hash.uses(view)
	if rows != nil {
		uses = append(uses, rows.AddRows)
	}
	picture, fault, err := r.writeRows(ctx, view, uses)
	if err != nil {
		return w, r.onGPU(err)
	}
	if rows != nil {
		if err := r.endRows(ctx, rows); err != nil {
			return w, err
		}
	}
	found, err := r.results(ctx, tally)
	if err != nil {
		return w, err
	}
	nearness, err := r.gatherAccuracy(ctx, near)
	if err != nil {
		return w, err
	}
	digest, err := r.digest(ctx, view, hash)
	if err != nil {
		return w, r.onGPU(err)
	}
	gathering := time.Now()
	parts, err := roster.GatherOn(ctx, r.team, "reports", r.rankReport(r.result, fault))
	if err != nil {
		return w, err
	}
	r.tracer.Phase(trace.PhaseReports, gathering)
	if r.id.Rank != 0 {
		r.sendTrace(whole)
		return w, nil
	}
	sum, file := digest.Sums()
	report, err := r.report(parts, sum)
	if err != nil {
		return w, err
	}
	report.Results, report.Accuracy = found, r.accuracy(nearness)
	set := &outputSet{run: r, report: &report}
	if err := set.finish(whole, picture, file, begin); err != nil {
		return w, err
	}
	w.report = &report
	return w, r.publish(report)
}

// writeRows writes this rank's rows to the field, averages them for the picture, and gives them to uses, all at once.
// On rank 0 it returns the whole picture. fault says why the rows are not in the field.
func (r *run) writeRows(ctx context.Context, view output.View,
	uses []output.Use) (picture *output.Thumbnail, fault, err error) {
	defer r.tracer.Phase(trace.PhaseRows, time.Now())
	c := r.Config.Output
	hx, hy := r.problem.Spacings()
	thumbnail := output.NewThumbnail(r.layout.Mesh, hx, hy)
	if c.Picture != "" {
		uses = append(uses, thumbnail.AddRows)
	}
	if c.Field != "" {
		uses = append(uses, func(lo int, rows []byte) error {
			if fault == nil {
				fault = r.rows.WriteRows(lo, rows)
			}
			return nil
		})
	}
	if uses != nil {
		if err := view.Each(ctx, uses...); err != nil {
			return nil, nil, err
		}
	}
	if r.rows.FieldWriter != nil {
		if err := r.rows.Close(); fault == nil {
			fault = err
		}
		r.rows.FieldWriter = nil // abort has nothing to abandon any more
	}
	if c.Picture != "" {
		picture, err = thumbnail.MergeAll(ctx, r.team.Gather, "picture")
	}
	return picture, fault, err
}

// publish sends the report to the launcher. A report that is too large for a message, as one of hundreds of ranks may
// be, stays behind: the launcher then reads its file.
func (m *membership) publish(report output.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	e := roster.Event{Kind: roster.Finished, Verdict: string(report.Verdict), Report: b}
	err = m.team.Publish(e)
	if errors.Is(err, nats.ErrMaxPayload) {
		e.Report = nil
		err = m.team.Publish(e)
	}
	return err
}
