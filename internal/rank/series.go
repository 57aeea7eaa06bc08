package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"jacobi/internal/output"
	"jacobi/solver"
)

// series is a solver.Sampler that writes the field again and again, each time to a file of its own. While the sweeps
// wait, each rank writes its rows; the files get to the disk and their names beside the sweeps. A file that cannot be
// written is only a warning.
type series struct {
	*ready
	beside
	stats output.SeriesReport // rank 0 only; not while a file is completed
	begun bool                // the series of an earlier run is trimmed; rank 0 only
}

// seriesTicket is what rank 0 tells the others about the next file.
type seriesTicket struct {
	output.Ticket
	Fault string `json:"fault,omitempty"` // why there is no file; "" if there is one
}

// addSeries makes the run write a series of fields if the configuration wants one.
func (r *ready) addSeries(open *closers) {
	if !r.Config.Output.Series() {
		return
	}
	every := r.Config.Output.Every.Sweeps
	r.series = &series{ready: r, beside: r.newBeside("series of fields"),
		stats: output.SeriesReport{Every: every, Files: r.Config.Output.SeriesFiles()}}
	open.add(r.series.close)
	r.samples = append(r.samples, solver.Sampling{Sampler: r.series, Every: every})
}

// Sample implements solver.Sampler.
func (s *series) Sample(ctx context.Context, at solver.Sample) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	ctx, cancel := s.withFileTimeout(ctx)
	defer cancel()
	var field *output.Field
	var t seriesTicket
	if s.id.Rank == 0 {
		var err error
		if field, err = s.create(at.Sweeps); err == nil {
			t.Ticket = field.Ticket()
		} else {
			t.Fault = err.Error()
		}
	}
	data, err := json.Marshal(t)
	if err == nil {
		data, err = s.team.Broadcast(ctx, "series", data)
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("series of fields: %w", err), abortField(field))
	}
	if t.Fault != "" {
		s.failed(at.Sweeps, t.Fault)
		return nil
	}
	rows, fault := s.openRows(t.Ticket)
	err = s.view().Each(ctx, func(lo int, data []byte) error {
		if fault == nil {
			fault = rows.WriteRows(lo, data)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, abortField(field), rows.abandon())
	}
	s.do(func(ctx context.Context) error { return s.complete(ctx, at.Sweeps, field, rows, fault) })
	return nil
}

func abortField(f *output.Field) error {
	if f == nil {
		return nil
	}
	return f.Abort()
}

// create creates the file of the field after so many sweeps. Before the first one it removes what an earlier run has
// left of its series beyond the sweep from which this run goes on.
func (s *series) create(sweeps int) (*output.Field, error) {
	c := s.Config.Output
	if !s.begun {
		keep := s.resumed.Start.Sweeps
		if keep == 0 {
			keep = -1
		}
		if err := s.place.TrimSeries(c, keep); err != nil {
			return nil, err
		}
		s.begun = true
	}
	return output.CreateField(s.place, c.SeriesFile(sweeps), s.id.RunID, s.layout.Mesh, s.fieldFormat())
}

// complete makes a file durable and gives it its name. It fails only if the ranks lose each other.
func (s *series) complete(ctx context.Context, sweeps int, field *output.Field, rows fieldRows, fault error) error {
	ctx, cancel := s.withFileTimeout(ctx)
	defer cancel()
	if rows.FieldWriter != nil {
		if err := rows.Close(); fault == nil {
			fault = err
		}
	}
	text := ""
	if fault != nil {
		text = fmt.Sprintf("rank %d on %s: %v", s.id.Rank, s.team.Self().Host, fault)
	}
	faults, err := s.team.Gather(ctx, "series", []byte(text))
	if err != nil {
		return errors.Join(fmt.Errorf("series of fields: %w", err), abortField(field))
	}
	if s.id.Rank != 0 {
		return nil
	}
	for _, f := range faults {
		if len(f) > 0 {
			err = errors.Join(err, errors.New(string(f)))
		}
	}
	if err == nil {
		err = field.Finish()
	}
	if err == nil {
		err = s.place.PutInSeries(s.Config.Output, field.File())
	}
	if err != nil {
		s.failed(sweeps, errors.Join(err, field.Abort()).Error())
		return nil
	}
	s.stats.Written++
	s.stats.Sweeps, s.stats.Index = sweeps, s.Config.Output.Index()
	return field.Close()
}

// failed counts a file that is not written. The first of several is a warning.
func (s *series) failed(sweeps int, why string) {
	if s.id.Rank != 0 {
		return
	}
	if s.stats.Failed++; s.stats.Failed == 1 || s.stats.Error != why {
		s.Log.Sugar().Warnf("%s is not written, the run goes on: %s", s.Config.Output.SeriesFile(sweeps), why)
	}
	s.stats.Error = why
}

// finish waits for the last file.
func (s *series) finish(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.wait(ctx)
}

// report describes the series; nil without one. Rank 0 calls it.
func (s *series) report() *output.SeriesReport {
	if s == nil {
		return nil
	}
	return &s.stats
}
