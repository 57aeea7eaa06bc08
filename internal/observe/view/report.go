package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Limits of a report, far beyond that of the largest run. Its ranks, and other objects, take much more memory than
// their text.
const (
	maxReport  = 64 << 20 // bytes
	maxRanks   = 1 << 14
	maxObjects = 16 * maxRanks
)

// readReport returns the report among the files of dir: report.json, or another .json file that is one. It returns nil
// if there is none.
func readReport(dir string, names []string) (*output.Report, error) {
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if (name == "report.json") != first || strings.ToLower(filepath.Ext(name)) != ".json" {
				continue
			}
			data, err := regular.ReadFile(filepath.Join(dir, name), maxReport)
			var r output.Report
			if err == nil {
				err = checkCounts(data)
			}
			if err == nil {
				err = json.Unmarshal(data, &r)
			}
			if err == nil {
				err = check(r)
			}
			switch {
			case err == nil:
				return &r, nil
			case first:
				return nil, fmt.Errorf("%s: no report of a run: %s", show.Text(filepath.Join(dir, name)),
					show.Text(err.Error()))
			}
		}
	}
	return nil, nil
}

// checkCounts returns an error if a report has too many ranks or objects.
func checkCounts(report []byte) error {
	if n := bytes.Count(report, []byte{'{'}); n > maxObjects {
		return fmt.Errorf("%d objects; at most %d are read", n, maxObjects)
	}
	return json.Unmarshal(report, &struct{ Ranks rankCount }{})
}

// rankCount reads the list of ranks without keeping it.
type rankCount struct{}

// UnmarshalJSON implements json.Unmarshaler. A report may have the list several times.
func (rankCount) UnmarshalJSON(list []byte) error {
	var ranks []struct{} // without size
	if err := json.Unmarshal(list, &ranks); err != nil {
		return err
	}
	if len(ranks) > maxRanks {
		return fmt.Errorf("%d ranks; at most %d are read", len(ranks), maxRanks)
	}
	return nil
}

// check returns an error if r is not what a run writes.
func check(r output.Report) error {
	decided := r.StopReason == solver.Converged || r.StopReason == solver.Stalled || r.StopReason == solver.Stagnated
	switch {
	case r.RunID == "" || r.Mesh.NX < 1 || r.Mesh.NY < 1:
		return fmt.Errorf("run_id and mesh are missing")
	case decided && r.Decisive == nil:
		return fmt.Errorf("stop_reason %s without decisive", r.StopReason)
	}
	return nil
}

// scaleOf returns output.picture_scale of a configuration.
func scaleOf(config json.RawMessage) string {
	var c struct {
		Output struct {
			Scale string `json:"picture_scale"`
		}
	}
	_ = json.Unmarshal(config, &c) // then the default
	switch c.Output.Scale {
	case output.ScaleLinear, output.ScaleLog, output.ScaleSqrt:
		return c.Output.Scale
	}
	return output.ScaleAuto
}

// RunOf describes the run of a report.
func RunOf(r output.Report) Run {
	goal := solver.Goal{Tolerance: r.Tolerance, Relative: r.RelativeTolerance, Base: r.Base}
	run := Run{Title: r.Title(), ID: r.RunID, Version: r.Version, NX: r.Mesh.NX, NY: r.Mesh.NY, DType: r.Mesh.DType,
		Method: r.Method, Step: configs.Solver{Method: r.Method}.Step(), Max: r.MaxIterations,
		Tolerance: min(goal.Target(), math.MaxFloat64)} // JSON has no infinity
	run.Step = cmp.Or(run.Step, "sweep")
	if r.Setup != nil {
		run.HX, run.HY, run.Facts = r.Setup.SpacingX, r.Setup.SpacingY, r.Setup.Lines()
	}
	return run
}

// EndOf describes the end of the run of a report.
func EndOf(r output.Report) Progress {
	p := Progress{State: Ended, Text: output.Result(r), Good: r.Converged, Sweeps: r.Sweeps, GLUPs: Float(r.GLUPS),
		End: r.Sweeps, Share: 1, Elapsed: r.Times.Sweeps, Results: r.Lines()}
	if r.Norm != nil {
		p.Norm = new(Float(*r.Norm))
	}
	return p
}

// ranksOf returns the table of ranks of a report.
func ranksOf(r output.Report) []Rank {
	list := make([]Rank, len(r.Ranks))
	for i, k := range r.Ranks {
		list[i] = Rank{Rank: k.Rank, Host: k.Host, Device: k.Device, Stripe: k.Stripe, Sweeps: new(r.Sweeps),
			Compute: new(k.Compute), HaloWait: k.HaloWait, NormWait: new(k.NormWait), Memory: new(k.MemoryBytes)}
		var bytes uint64
		known := false
		for _, link := range k.Transports {
			if link.Traffic != nil {
				bytes, known = bytes+link.Traffic.Bytes, true
			}
		}
		if known {
			list[i].Bytes = &bytes
		}
	}
	return list
}
