package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/observe/output"
)

// scrape returns the metrics at url by name and labels.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	samples := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if samples[line[:i]], err = strconv.ParseFloat(line[i+1:], 64); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if lines.Err() != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, lines.Err())
	}
	return samples
}

// metricsURL waits for the address of the metrics in the output of l.
func metricsURL(l *live) string {
	l.t.Helper()
	_, url, _ := strings.Cut(l.waitFor(`metrics: http://127\.0\.0\.1:\d+/metrics`), "metrics: ")
	return strings.TrimSpace(url)
}

// agrees checks that the metrics after a run are those of its report.
func agrees(t *testing.T, got map[string]float64, r output.Report) {
	t.Helper()
	for key, v := range reported(r) {
		if g, ok := got[key]; !ok || g != v {
			t.Errorf("%s %v, the report has %v", key, g, v)
		}
	}
}

// reported returns the metrics that a report tells.
func reported(r output.Report) map[string]float64 {
	want := map[string]float64{"jacobi_norm": *r.Norm, "jacobi_restarts_total": 0,
		"jacobi_expected_iterations": float64(r.Sweeps), "jacobi_remaining_seconds": 0,
		"jacobi_tolerance": r.Tolerance, "jacobi_max_iterations": float64(r.MaxIterations)}
	for _, k := range r.Ranks {
		of := func(name string) string { return fmt.Sprintf(`jacobi_%s{rank="%d"}`, name, k.Rank) }
		rows := float64(k.Stripe[1] - k.Stripe[0])
		want[of("iterations_total")] = float64(r.Sweeps)
		want[of("point_updates_total")] = rows * float64(r.Mesh.NX) * float64(r.Sweeps)
		want[of("halo_wait_seconds_total")], want[of("norm_wait_seconds_total")] = *k.HaloWait, k.NormWait
		want[of("refused_messages_total")] = float64(k.RefusedMessages)
		want[of("field_memory_bytes")] = float64(k.MemoryBytes)
		where := fmt.Sprintf(`backend="cpu",device="%s",host="%s",rank="%d"`, k.Device, k.Host, k.Rank)
		want["jacobi_rank_info{"+where+"}"] = 1
		for side, l := range k.Transports {
			half := float64(l.Traffic.Bytes) / 2
			at := fmt.Sprintf(`_total{rank="%d",side="%s",transport="%s"}`, k.Rank, side, l.Transport)
			want["jacobi_halo_sent_bytes"+at], want["jacobi_halo_received_bytes"+at] = half, half
			if l.NATS != nil {
				want["jacobi_halo_resent_frames"+at] = float64(l.NATS.Resent)
				want["jacobi_halo_duplicate_frames"+at] = float64(l.NATS.Duplicates)
			}
		}
	}
	if k := r.Checkpoints; k != nil {
		want["jacobi_checkpoints_written_total"] = float64(k.Written)
		want["jacobi_checkpoint_size_bytes"] = float64(k.Bytes)
	}
	return want
}

// wholeReport reads the report of a run in dir.
func wholeReport(t *testing.T, dir string) (r output.Report) {
	t.Helper()
	if err := json.Unmarshal([]byte(readText(t, dir, "out", "report.json")), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The launcher serves metrics while a run lasts and until they were read once more. The last ones are the report's.
func TestLauncherServesMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLive(t, dir, onRanks(3, "metrics.listen=127.0.0.1:0", "metrics.linger=1m", "grid.nx=200", "grid.ny=300",
		"solver.max_iterations=500", "halo.transport=nats", "checkpoint.dir=saved", "checkpoint.every=100 sweeps")...)
	url := metricsURL(l)
	l.waitFor(`waiting up to 1m0s for a scrape of the metrics; Ctrl-C ends that`)
	got := scrape(t, url)
	l.ends(0)
	l.leavesNothing()
	agrees(t, got, wholeReport(t, dir))
}

// While a run lasts, the metrics go on with it, and an interrupt ends it as ever.
func TestMetricsGoOn(t *testing.T) {
	t.Parallel()
	l := startLive(t, t.TempDir(), onRanks(2, with(endless, "metrics.listen=127.0.0.1:0")...)...)
	url := metricsURL(l)
	const key = `jacobi_iterations_total{rank="1"}`
	rises := func(from float64) float64 {
		for deadline := time.Now().Add(limit / 2); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if got := scrape(t, url); got[key] > from && got[`jacobi_rank_seen_timestamp_seconds{rank="1"}`] > 0 {
				return got[key]
			}
		}
		t.Fatalf("%s stays at %v", key, from)
		return 0
	}
	rises(rises(0))
	l.signal(os.Interrupt)
	l.ends(130)
}

// Ctrl-C ends the wait for the last scrape; the run has ended well.
func TestInterruptEndsLinger(t *testing.T) {
	t.Parallel()
	l := startLive(t, t.TempDir(), onRanks(2, "metrics.listen=127.0.0.1:0", "metrics.linger=1m", "grid.nx=20",
		"grid.ny=30", "solver.max_iterations=5")...)
	l.waitFor("waiting up to")
	l.signal(syscall.SIGINT)
	l.ends(0)
}

// Without a launcher rank 0 serves the metrics of all ranks.
func TestRankServesMetrics(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			dir := t.TempDir()
			script := `for r in $(seq 1 $(($WORLD_SIZE - 1))); do RANK=$r LOCAL_RANK=$r "$@" & done
				RANK=0 LOCAL_RANK=0 "$@"; code=$?; wait; exit $code`
			cmd := command(limited(t), dir, "/bin/sh", append([]string{"-c", script, "sh", bin + "/jacobi-rank"},
				set("grid.nx=200", "grid.ny=300", "solver.max_iterations=200", "metrics.listen=127.0.0.1:0",
					"metrics.linger=1m")...)...)
			n := strconv.Itoa(size)
			cmd.Env = append(cmd.Env, "WORLD_SIZE="+n, "LOCAL_WORLD_SIZE="+n, "JACOBI_LAUNCHED_BY=torchrun")
			l := startCommand(t, cmd)
			url := metricsURL(l)
			l.waitFor("waiting up to 1m0s for a scrape of the metrics")
			got := scrape(t, url)
			l.ends(0)
			agrees(t, got, wholeReport(t, dir))
		})
	}
}

// startMeasuredAgent starts an agent with one slot that serves metrics, and returns where.
func startMeasuredAgent(t *testing.T, u *url.URL) (metrics string) {
	t.Helper()
	a := startAgent(t, t.TempDir(), u, "--slots", "1", "--metrics", ":0")
	found := regexp.MustCompile(`(?m)^launcher: metrics: (http://127\.0\.0\.1:\d+/metrics)$`).FindStringSubmatch(
		a.seen.String())
	if found == nil {
		t.Fatalf("the agent does not say where its metrics are:\n%s", a.seen.String())
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
	l := startLive(t, dir, onNodes(u, onRanks(2, endless...)...)...)
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
	l.signal(os.Interrupt)
	l.ends(130)

	mustRun(t, dir, "launcher", onNodes(u, onRanks(2, "grid.nx=200", "grid.ny=300", "solver.max_iterations=500",
		"halo.transport=nats")...)...)
	r := wholeReport(t, dir)
	all := map[string]float64{"jacobi_restarts_total": 0} // no agent knows of restarts
	for _, url := range agents {
		_, got := awaitRank(t, url, r.RunID, r.Sweeps)
		maps.Copy(all, got)
	}
	agrees(t, all, r)
}
