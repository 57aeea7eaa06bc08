package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"jacobi/configs"
	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/events"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/launch"
	"jacobi/internal/run/plan"
)

// startJSON is start with events on stdout. The last one tells how the command ended.
func startJSON(ctx context.Context, o options, stdout, stderr io.Writer) error {
	w := events.NewWriter(stdout)
	err := start(ctx, o, w, stdout, stderr)
	end := events.End{ExitCode: exitCode(err), Verdict: w.Verdict}
	if _, told := errors.AsType[launch.ExitError](err); err != nil && !told {
		end.Error = err.Error()
	}
	w.Write(events.Event{Event: "end", End: &end})
	if fault := w.Close(); fault != nil {
		newScreen(stderr, stderr, look{tag: o.tag}).warn("--json: " + fault.Error())
	}
	return err
}

// planEvent describes p, the plan of the given start of the run.
func planEvent(p *plan.Plan, start int) (events.Event, error) {
	config, err := json.Marshal(configs.Redacted(p.Config))
	if err != nil {
		return events.Event{}, err
	}
	e := events.Plan{Schema: events.Schema, Version: version.String(), Start: start, Text: p.String(),
		Depth:  p.Depth.Rows,
		Config: config, Ranks: make([]events.Rank, len(p.Placements))}
	for r, at := range p.Placements {
		e.Ranks[r] = events.Rank{Rank: r, Host: at.Host, LocalRank: at.LocalRank, MemoryBytes: p.Memory[r],
			Stripe: [2]int{p.Stripes[r].Lo, p.Stripes[r].Hi}}
		if len(p.Choices) > 0 && p.Choices[r] != nil {
			e.Ranks[r].GPU = &p.Choices[r].Index
		}
	}
	return events.Event{Event: "plan", Plan: &e}, nil
}

// tellEvent writes what a rank tells as an event; a nil Writer takes none.
func tellEvent(to *events.Writer, e roster.Event) {
	switch e.Kind {
	case roster.Progress:
		to.Write(events.Event{Event: "progress", Progress: events.ProgressOf(e)})
	case roster.Stats:
		if s, ok := events.StatsOf(e); ok {
			to.Write(events.Event{Event: "stats", Stats: s})
		}
	}
}

// reportEvent holds the report of the run.
func reportEvent(r output.Report) (events.Event, error) {
	data, err := json.Marshal(r)
	return events.Event{Event: "report", Report: data}, err
}
