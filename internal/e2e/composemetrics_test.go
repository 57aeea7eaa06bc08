package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ask sends a query to the Prometheus at a host and returns the number of its results.
func ask(t *testing.T, host, query string) int {
	t.Helper()
	answer, err := http.Get("http://" + host + ":9090/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		t.Logf("%s: %v", query, err) // it may not listen yet
		return 0
	}
	defer answer.Body.Close()
	var said struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if said.Status != "success" && answer.StatusCode != http.StatusServiceUnavailable { // while it starts
		t.Fatalf("%s: %s %s", query, said.Status, said.Error)
	}
	return len(said.Data.Result)
}

// dashboardQueries returns the queries of the dashboard as Grafana would ask them.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../docker/metrics/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, strings.ReplaceAll(q.Expr, "$__rate_interval", "20s"))
		}
	}
	return queries
}

// The Prometheus of the profile metrics reads a run of the cluster, and answers all queries of the dashboard. Those for
// GPUs and checkpoints have no results here.
func TestComposeMetrics(t *testing.T) {
	t.Parallel()
	installed(t, "prometheus")
	c := startCluster(t, "compose.yaml")
	c.must(c.compose("--profile", "metrics", "up", "-d", "--no-build", "prometheus"))
	ids := c.containers("prometheus")
	if len(ids) != 1 {
		t.Fatalf("containers %v, want 1", ids)
	}
	host := strings.TrimSpace(c.must(exec.Command("docker", "inspect", "--format",
		"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", ids[0])))
	cmd := c.compose(append([]string{"run", "--rm", "-T", "--use-aliases", "-e", "JACOBI_METRICS_LISTEN=:9464",
		"launcher", "-np", "8", "--nodes", "--config", "/run.yaml"}, set(endless...)...)...)
	cmd.Env = c.env
	l := startCommand(t, cmd)
	l.waitFor(progress)
	left := dashboardQueries(t)
	empty := regexp.MustCompile(`jacobi_(gpu|checkpoints)_`)
	for deadline := time.Now().Add(limit / 2); len(left) > 0; time.Sleep(time.Second) {
		var still []string
		for _, query := range left {
			if n := ask(t, host, query); n == 0 && !empty.MatchString(query) {
				still = append(still, query)
			}
		}
		if left = still; time.Now().After(deadline) && len(left) > 0 {
			t.Fatalf("no results of %q", left)
		}
	}
	if n := ask(t, host, `count(jacobi_rank_info) == 8`); n != 1 {
		t.Errorf("Prometheus does not know 8 ranks")
	}
	c.must(exec.Command("docker", append([]string{"kill", "--signal", "INT"}, c.containers("launcher")...)...))
	if code, output := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, output)
	}
}
