package outputs

import (
	"context"
	"errors"
	"fmt"

	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// series writes the field again and again, each time to a file of its own. While the sweeps wait, each rank writes its
// rows; beside them the files get to the disk and in place. A file that cannot be written is only a warning.
type series struct {
	*Outputs
	stats output.SeriesReport // rank 0 only
	begun bool                // the series of an earlier run is trimmed; rank 0 only
}

// seriesTicket is what rank 0 tells the others about the next file.
type seriesTicket struct {
	output.Ticket
	Fault string `json:"fault,omitempty"` // why there is no file; "" if there is one
}

func (o *Outputs) newSeries() *series {
	c := o.Config.Output
	return &series{Outputs: o, stats: output.SeriesReport{Every: c.Every.Sweeps, Files: c.SeriesFiles()}}
}

func (s *series) take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error) {
	var field *output.Field
	var t seriesTicket
	if s.id.Rank == 0 {
		if field, err = s.create(at.Sweeps); err == nil {
			t.Ticket = field.Ticket()
		} else {
			t.Fault = err.Error()
		}
	}
	if t, err = roster.BroadcastOn(ctx, s.Comm, "series", t); err != nil {
		return nil, fmt.Errorf("series of fields: %w", err)
	}
	if t.Fault != "" {
		s.failed(at.Sweeps, t.Fault)
		return nil, nil
	}
	rows, _, fault := s.openRows(t.Ticket)
	err = s.view().Each(ctx, func(lo int, data []byte) error {
		if fault == nil {
			fault = rows.WriteRows(lo, data)
		}
		return nil
	})
	if err != nil && rows != nil {
		err = errors.Join(err, rows.Abandon())
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.complete(ctx, at.Sweeps, field, rows, fault) }, nil
}

// create creates the file of the field after the given number of sweeps. Before the first one it removes what an
// earlier run has left of its series beyond the sweep from which this run goes on.
func (s *series) create(sweeps int) (*output.Field, error) {
	if !s.begun {
		keep := s.Start
		if keep == 0 {
			keep = -1
		}
		if err := s.place.TrimSeries(keep); err != nil {
			return nil, err
		}
		s.begun = true
	}
	hx, hy := s.Problem.Spacings()
	c, m := s.Config.Output, s.Layout.Mesh
	return output.CreateField(s.place, c.SeriesFile(sweeps), m, output.FieldFormat(c, m, hx, hy))
}

// complete makes a file durable and puts it in place. It fails only if the ranks lose each other.
func (s *series) complete(ctx context.Context, sweeps int, field *output.Field, rows *output.FieldWriter,
	fault error) error {
	if rows != nil {
		if err := rows.Close(); fault == nil {
			fault = err
		}
	}
	text := ""
	if fault != nil {
		text = fmt.Sprintf("rank %d on %s: %v", s.id.Rank, s.Comm.Self().Host, fault)
	}
	faults, err := roster.GatherOn(ctx, s.Comm, "series", text)
	if err != nil {
		return fmt.Errorf("series of fields: %w", err)
	}
	if s.id.Rank != 0 {
		return nil
	}
	for _, f := range faults {
		if f != "" {
			err = errors.Join(err, errors.New(f))
		}
	}
	if err == nil {
		err = field.Finish()
	}
	if err == nil {
		err = s.place.Put(s.Config.Output.SeriesFile(sweeps))
	}
	if err != nil {
		s.failed(sweeps, errors.Join(err, field.Abort()).Error())
		return nil
	}
	s.stats.Written++
	s.stats.Sweeps, s.stats.Index = sweeps, s.Config.Output.Index()
	return nil
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

func (s *series) finish(context.Context, solver.Result) error { return nil }

// report describes the series; nil without one. Rank 0 calls it.
func (s *series) report() *output.SeriesReport {
	if s == nil {
		return nil
	}
	return &s.stats
}
