package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// startMeasuredAgent starts an agent with one slot that serves metrics, and returns where.
func startMeasuredAgent(t *testing.T, u *url.URL) (metrics string) {
	t.Helper()
	a := startAgent(t, t.TempDir(), u, "--slots", "1", "--metrics", ":0")
	found := regexp.MustCompile(`(?m)^launcher: metrics: (http://127\.0\.0\.1:\d+/metrics)$`).FindStringSubmatch(
		strings.Join(a.seen, "\n"))
	if found == nil {
		t.Fatalf("the agent does not say where its metrics are:\n%s", strings.Join(a.seen, "\n"))
	}
	return found[1]
}

var counter = regexp.MustCompile(`^jacobi_iterations_total\{rank="(\d+)"}$`)

var labelOfRun = regexp.MustCompile(`,?run="([^"]*)"`)

// byRun scrapes the metrics of an agent. It returns those of each run, without the label of the run.
func byRun(t *testing.T, url string) map[string]map[string]float64 {
	t.Helper()
	runs := map[string]map[string]float64{}
	for key, v := range scrape(t, url) {
		label := labelOfRun.FindStringSubmatch(key)
		if label == nil {
			t.Fatalf("%s has no run", key)
		}
		if runs[label[1]] == nil {
			runs[label[1]] = map[string]float64{}
		}
		runs[label[1]][strings.TrimSuffix(labelOfRun.ReplaceAllString(key, ""), "{}")] = v
	}
	return runs
}

// awaitRank scrapes the metrics of an agent until its rank of a run has this many iterations. run "" is the only one
// there. It returns the rank, which must be the only one, and the metrics.
func awaitRank(t *testing.T, url, run string, iterations int) (rank string, got map[string]float64) {
	t.Helper()
	for deadline := time.Now().Add(limit / 2); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		runs := byRun(t, url)
		if ids := slices.Collect(maps.Keys(runs)); run == "" && len(ids) == 1 {
			run = ids[0]
		}
		got = runs[run]
		var ranks []string
		reached := false
		for key, v := range got {
			if m := counter.FindStringSubmatch(key); m != nil {
				ranks, reached = append(ranks, m[1]), v >= float64(iterations)
			}
		}
		if reached {
			if len(ranks) != 1 {
				t.Fatalf("%s has ranks %v, want one", url, ranks)
			}
			return ranks[0], got
		}
	}
	t.Fatalf("%s: run %q does not reach %d iterations: %v", url, run, iterations, got)
	return "", nil
}

// Each agent serves the metrics of its own ranks while they sweep. An agent whose port is taken says so and ends, and
// the run goes on. After a run, the metrics of all agents together are those of its report.
func TestAgentsServeMetrics(t *testing.T) {
	u := startServer(t)
	dir := t.TempDir()
	agents := []string{startMeasuredAgent(t, u), startMeasuredAgent(t, u)}
	l := startLive(t, dir, onNodes(u, append(set(endless...), "-np", "2")...)...)
	ranks := map[string]bool{}
	for _, url := range agents {
		rank, _ := awaitRank(t, url, "", 1)
		ranks[rank] = true
	}
	if !ranks["0"] || !ranks["1"] {
		t.Errorf("the agents have ranks %v, want 0 and 1", ranks)
	}
	taken := strings.TrimSuffix(strings.TrimPrefix(agents[0], "http://"), "/metrics")
	out := run(t, dir, "launcher", "node", "--metrics", taken, "--set", "nats.url="+u.String())
	if want := fmt.Sprintf("launcher: --metrics %q: bind: address already in use\n", taken); out.code != 1 ||
		out.stderr != want {
		t.Errorf("exit code %d, %q, want 1 and %q", out.code, out.stderr, want)
	}
	_, before := awaitRank(t, agents[0], "", 1)
	for key, v := range before {
		if counter.MatchString(key) {
			awaitRank(t, agents[0], "", int(v)+1)
		}
	}
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, text := l.end(); code != 130 {
		t.Fatalf("exit code %d\n%s", code, text)
	}

	end := run(t, dir, "launcher", onNodes(u, append(set("grid.nx=200", "grid.ny=300", "solver.max_iterations=500",
		"halo.transport=nats"), "-np", "2")...)...)
	if end.code != 0 {
		t.Fatalf("exit code %d\n%s", end.code, end.stderr)
	}
	r := wholeReport(t, dir)
	all := map[string]float64{"jacobi_restarts_total": 0} // no agent knows of restarts
	for _, url := range agents {
		_, got := awaitRank(t, url, r.RunID, r.Sweeps)
		maps.Copy(all, got)
	}
	agrees(t, all, r)
}
