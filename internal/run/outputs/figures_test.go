package outputs

import (
	"slices"
	"testing"

	"jacobi/internal/observe/output"
)

// Where one rank has no part in the results, there are none, and the first such rank says why.
func TestFiguresOfARankAreMissing(t *testing.T) {
	o := smallOutputs(t)
	f := &figures{Outputs: o}
	got := f.merge([]figuresPart{{}, {Fault: "gone"}, {Fault: "gone, too"}},
		func(rank int) string { return []string{"a", "b", "c"}[rank] })
	if got.fault != "rank 1 on b: gone" || got.results != nil || got.nearness != nil || got.residual != nil {
		t.Errorf("%+v", got)
	}
}

// What ranks lack is entered under its name with the first rank that lacks it. A picture that a rank lacks is not
// drawn.
func TestMissingOutputs(t *testing.T) {
	o := smallOutputs(t)
	o.Config.Output.Picture, o.Config.Output.Field = "u.png", "u.vti"
	report := output.Report{Ranks: []output.RankReport{
		{Rank: 0, Host: "a", Missing: map[string]string{"coefficient in u.vti": "gone"}},
		{Rank: 1, Host: "b", Missing: map[string]string{"coefficient in u.vti": "gone, too", "u.png": "gone as well"}},
	}}
	picture, err := o.miss(&report, "rank 2 on c: no file", nil)
	must(t, err)
	want := []output.FileFault{{Name: "results", Error: "rank 2 on c: no file"},
		{Name: "coefficient in u.vti", Error: "rank 0 on a: gone"}}
	if !slices.Equal(report.Missing, want) || report.Failed != nil {
		t.Errorf("missing %v, failed %v; want %v", report.Missing, report.Failed, want)
	}
	if _, err := picture(); err == nil || err.Error() != "rank 1 on b: gone as well" {
		t.Errorf("picture: %v", err)
	}
	if err := report.Fault(); err == nil || err.Error() !=
		"no results: rank 2 on c: no file\nno coefficient in u.vti: rank 0 on a: gone" {
		t.Errorf("fault: %v", err)
	}
}
