package metrics

import (
	"encoding/json"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The dashboard in docker/ asks for metrics that exist, and each panel for one at least.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../docker/metrics/dashboard.json")
	must(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal(text, &d))
	known := labels(t)
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
				if _, ok := known[name]; !ok {
					t.Errorf("panel %s: %s is no metric", p.Title, name)
				}
			}
		}
	}
	if len(d.Panels) < 10 {
		t.Errorf("%d panels", len(d.Panels))
	}
}

// The files in docker/ fit together: the panels ask the data source that Grafana is given, at a service of the cluster,
// Prometheus scrapes another one, and the dashboard lies where Grafana looks for it.
func TestDashboardIsProvisioned(t *testing.T) {
	read := func(name string, v any) {
		t.Helper()
		text, err := os.ReadFile("../../../docker/" + name)
		if err == nil {
			err = yaml.Unmarshal(text, v)
		}
		must(t, err)
	}
	var sources struct {
		Datasources []struct{ UID, Type, URL string }
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	var compose struct {
		Services map[string]struct{ Volumes []string }
	}
	var scraped struct {
		Configs []struct {
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	var dashboard struct {
		Panels []struct {
			Title      string
			Datasource struct{ UID, Type string }
		}
	}
	read("metrics/provisioning/datasources/prometheus.yml", &sources)
	read("metrics/provisioning/dashboards/jacobi.yml", &providers)
	read("metrics/dashboard.json", &dashboard)
	read("metrics/prometheus.yml", &scraped)
	read("compose.yaml", &compose)
	source := sources.Datasources[0]
	for _, p := range dashboard.Panels {
		if p.Datasource.UID != source.UID || p.Datasource.Type != source.Type {
			t.Errorf("panel %s asks %v, and Grafana has %v", p.Title, p.Datasource, source)
		}
	}
	u, err := url.Parse(source.URL)
	must(t, err)
	for _, at := range []string{u.Host, scraped.Configs[0].Static[0].Targets[0]} {
		host, _, _ := strings.Cut(at, ":")
		if _, ok := compose.Services[host]; !ok {
			t.Errorf("%s is no service of the cluster", at)
		}
	}
	var dirs []string
	for _, volume := range compose.Services["grafana"].Volumes {
		if at, ok := strings.CutPrefix(volume, "./metrics/dashboard.json:"); ok {
			dirs = append(dirs, path.Dir(strings.TrimSuffix(at, ":ro")))
		}
	}
	if want := []string{providers.Providers[0].Options.Path}; !slices.Equal(dirs, want) {
		t.Errorf("the dashboard is in %v, and Grafana looks in %v", dirs, want)
	}
}
