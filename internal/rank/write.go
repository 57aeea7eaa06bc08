package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/output"
	"jacobi/internal/results"
	"jacobi/internal/roster"
	"jacobi/internal/trace"
	"jacobi/solver"
)

// written is the end of a rank.
type written struct {
	result solver.Result
	report *output.Report // of the run; rank 0 only
	held   *output.Held   // output.dir, on rank 0 of a run without a launcher; otherwise nil
}

// write writes all files and publishes the report. If a file cannot be written, the report says so, and the others are
// written all the same. All ranks call it.
func (s *solved) write(ctx context.Context) (written, error) {
	w, begin, whole := written{result: s.result, held: s.place.held}, time.Now(), ctx
	ctx, cancel := s.withFileTimeout(ctx)
	defer cancel()
	view := s.view()
	var tally *results.Tally
	if s.Config.Output.Results {
		tally = results.New(s.problem, s.layout.Stripe)
	}
	hash, err := s.startHash(ctx, view)
	if err != nil {
		return w, s.onGPU(err)
	}
	picture, fault, err := s.writeRows(ctx, view, tally, hash.uses(view))
	if err != nil {
		return w, s.onGPU(err)
	}
	found, err := s.results(ctx, tally)
	if err != nil {
		return w, err
	}
	digest, err := s.digest(ctx, view, hash)
	if err != nil {
		return w, s.onGPU(err)
	}
	part, err := json.Marshal(s.rankReport(s.result, fault))
	if err != nil {
		return w, err
	}
	gathering := time.Now()
	parts, err := s.team.Gather(ctx, "reports", part)
	if err != nil {
		return w, err
	}
	s.tracer.Phase(trace.PhaseReports, gathering)
	if s.id.Rank != 0 {
		s.sendTrace(whole)
		return w, nil
	}
	rows, file := digest.Sums()
	report, err := s.report(parts, rows)
	if err != nil {
		return w, err
	}
	report.Results = found
	set := &outputSet{ready: s.ready, report: &report}
	if err := set.finish(whole, picture, file, begin); err != nil {
		return w, err
	}
	w.report = &report
	return w, s.publish(report)
}

// writeRows writes this rank's rows to the field, averages them for the picture, and adds them to the tally and to the
// hash, all at once; tally may be nil. On rank 0 it returns the whole picture. fault says why the rows are not in the
// field.
func (r *ready) writeRows(ctx context.Context, view output.View, tally *results.Tally,
	hash []output.Use) (picture *output.Thumbnail, fault, err error) {
	defer r.tracer.Phase(trace.PhaseRows, time.Now())
	c := r.Config.Output
	thumbnail := output.NewThumbnail(r.layout.Mesh)
	uses := hash
	if c.Picture != "" {
		uses = append(uses, thumbnail.AddRows)
	}
	if tally != nil {
		uses = append(uses, tally.AddRows)
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
		picture, err = r.mergePicture(ctx, "picture", thumbnail)
	}
	return picture, fault, err
}

// mergePicture adds the pictures of all ranks, in messages called name. It returns the whole picture on rank 0, and nil
// elsewhere.
func (j *joined) mergePicture(ctx context.Context, name string, own *output.Thumbnail) (*output.Thumbnail, error) {
	data, err := own.MarshalBinary()
	if err != nil {
		return nil, err
	}
	parts, err := j.team.Gather(ctx, name, data)
	if err != nil || j.id.Rank != 0 {
		return nil, err
	}
	for rank, part := range parts {
		if rank == 0 {
			continue
		}
		var t output.Thumbnail
		if err := t.UnmarshalBinary(part); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank, err)
		}
		if err := own.Merge(&t); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank, err)
		}
	}
	return own, nil
}

// publish sends the report to the launcher. A report that is too large for a message, as one of hundreds of ranks may
// be, stays behind: the launcher then reads its file.
func (j *joined) publish(report output.Report) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	err = j.team.Publish(roster.Event{Kind: roster.Finished, Report: b})
	if errors.Is(err, nats.ErrMaxPayload) {
		err = j.team.Publish(roster.Event{Kind: roster.Finished})
	}
	return err
}
