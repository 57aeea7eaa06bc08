// Package series writes the field again and again while a run goes on, each time to a file of its own.
package series

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/background"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Options are what a Series takes of its run.
type Options struct {
	Comm    *roster.Comm
	Log     *zap.Logger
	Output  configs.Output
	Place   output.Place
	View    output.View
	Format  output.Format
	Start   int           // sweeps of the field from which the run goes on
	Timeout time.Duration // of a step in which ranks wait for each other's files
}

// Series writes fields. While the sweeps wait, each rank writes its rows; the files get to the disk and their names in
// the background. A file that cannot be written is only a warning.
type Series struct {
	background.Background
	Options
	stats output.SeriesReport // rank 0 only; not while a file is completed
	begun bool                // the series of an earlier run is trimmed; rank 0 only
}

// ticket is what rank 0 tells the others about the next file.
type ticket struct {
	output.Ticket
	Fault string `json:"fault,omitempty"` // why there is no file; "" if there is one
}

// New returns a Series without files.
func New(o Options) *Series {
	return &Series{Background: background.New(o.Comm.Context(), "series of fields"), Options: o,
		stats: output.SeriesReport{Every: o.Output.Every.Sweeps, Files: o.Output.SeriesFiles()}}
}

// Sampling returns the samples that the series wants.
func (s *Series) Sampling() solver.Sampling {
	return solver.Sampling{Sampler: s, Every: s.Output.Every.Sweeps}
}

// Sample implements solver.Sampler.
func (s *Series) Sample(ctx context.Context, at solver.Sample) error {
	if err := s.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := awake.WithTimeout(ctx, s.Timeout)
	defer cancel()
	var field *output.Field
	var t ticket
	if s.Comm.Self().Rank == 0 {
		var err error
		if field, err = s.create(at.Sweeps); err == nil {
			t.Ticket = field.Ticket()
		} else {
			t.Fault = err.Error()
		}
	}
	t, err := roster.BroadcastOn(ctx, s.Comm, "series", t)
	if err != nil {
		return errors.Join(fmt.Errorf("series of fields: %w", err), abortField(field))
	}
	if t.Fault != "" {
		s.failed(at.Sweeps, t.Fault)
		return nil
	}
	var rows *output.FieldWriter
	f, _, fault := s.Place.Open(t.File)
	if fault == nil {
		rows = output.NewFieldWriter(f, t.Ticket)
	}
	err = s.View.Each(ctx, func(lo int, data []byte) error {
		if fault == nil {
			fault = rows.WriteRows(lo, data)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, abortField(field), abandon(rows))
	}
	s.Do(func(ctx context.Context) error { return s.complete(ctx, at.Sweeps, field, rows, fault) })
	return nil
}

func abortField(f *output.Field) error {
	if f == nil {
		return nil
	}
	return f.Abort()
}

func abandon(rows *output.FieldWriter) error {
	if rows == nil {
		return nil
	}
	return rows.Abandon()
}

// create creates the file of the field after the given number of sweeps. Before the first one it removes what an
// earlier run has left of its series beyond the sweep from which this run goes on.
func (s *Series) create(sweeps int) (*output.Field, error) {
	c := s.Output
	if !s.begun {
		keep := s.Start
		if keep == 0 {
			keep = -1
		}
		if err := s.Place.TrimSeries(keep); err != nil {
			return nil, err
		}
		s.begun = true
	}
	return output.CreateField(s.Place, c.SeriesFile(sweeps), s.View.Mesh, s.Format)
}

// complete makes a file durable and gives it its name. It fails only if the ranks lose each other.
func (s *Series) complete(ctx context.Context, sweeps int, field *output.Field, rows *output.FieldWriter,
	fault error) error {
	ctx, cancel := awake.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if rows != nil {
		if err := rows.Close(); fault == nil {
			fault = err
		}
	}
	text := ""
	if fault != nil {
		text = fmt.Sprintf("rank %d on %s: %v", s.Comm.Self().Rank, s.Comm.Self().Host, fault)
	}
	faults, err := roster.GatherOn(ctx, s.Comm, "series", text)
	if err != nil {
		return errors.Join(fmt.Errorf("series of fields: %w", err), abortField(field))
	}
	if s.Comm.Self().Rank != 0 {
		return nil
	}
	for _, f := range faults {
		if len(f) > 0 {
			err = errors.Join(err, errors.New(f))
		}
	}
	if err == nil {
		err = field.Finish()
	}
	if err == nil {
		err = s.Place.Put(s.Output.SeriesFile(sweeps))
	}
	if err != nil {
		s.failed(sweeps, errors.Join(err, field.Abort()).Error())
		return nil
	}
	s.stats.Written++
	s.stats.Sweeps, s.stats.Index = sweeps, s.Output.Index()
	return nil
}

// failed counts a file that is not written. The first of several is a warning.
func (s *Series) failed(sweeps int, why string) {
	if s.Comm.Self().Rank != 0 {
		return
	}
	if s.stats.Failed++; s.stats.Failed == 1 || s.stats.Error != why {
		s.Log.Sugar().Warnf("%s is not written, the run goes on: %s", s.Output.SeriesFile(sweeps), why)
	}
	s.stats.Error = why
}

// Finish waits for the last file.
func (s *Series) Finish(ctx context.Context, _ solver.Result) error { return s.Wait(ctx) }

// Report describes the series; nil without one. Rank 0 calls it.
func (s *Series) Report() *output.SeriesReport {
	if s == nil {
		return nil
	}
	return &s.stats
}
