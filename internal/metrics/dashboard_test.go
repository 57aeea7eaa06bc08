package metrics

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// The dashboard in docker/ asks for metrics that exist, and each panel for one at least.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docker/metrics/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	known := names()
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
		for _, q := range p.Targets {
			found := metricName.FindAllString(q.Expr, -1)
			if len(found) == 0 {
				t.Errorf("panel %s: %s asks for no metric", p.Title, q.Expr)
			}
			for _, name := range found {
				if !slices.Contains(known, name) {
					t.Errorf("panel %s: %s is no metric", p.Title, name)
				}
			}
		}
	}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
}
