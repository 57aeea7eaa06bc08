package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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
	data, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The launcher serves metrics while a run lasts and until they were read once more. The last ones are the report's.
func TestLauncherServesMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := startLive(t, dir, append(set("metrics.listen=127.0.0.1:0", "metrics.linger=1m", "grid.nx=200", "grid.ny=300",
		"solver.max_iterations=500", "halo.transport=nats", "checkpoint.dir=saved", "checkpoint.every=100 sweeps"),
		"-np", "3")...)
	url := metricsURL(l)
	l.waitFor(`waiting up to 1m0s for a scrape of the metrics; Ctrl-C ends that`)
	got := scrape(t, url)
	if code, text := l.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
	l.leavesNothing()
	agrees(t, got, wholeReport(t, dir))
}

// While a run lasts, the metrics go on with it, and an interrupt ends it as ever.
func TestMetricsGoOn(t *testing.T) {
	t.Parallel()
	l := startLive(t, t.TempDir(), append(set(append(endless, "metrics.listen=127.0.0.1:0")...), "-np", "2")...)
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
	if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, text := l.end(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, text)
	}
}

// Ctrl-C ends the wait for the last scrape; the run has ended well.
func TestInterruptEndsLinger(t *testing.T) {
	t.Parallel()
	l := startLive(t, t.TempDir(), append(set("metrics.listen=127.0.0.1:0", "metrics.linger=1m", "grid.nx=20",
		"grid.ny=30", "solver.max_iterations=5"), "-np", "2")...)
	l.waitFor("waiting up to")
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, text := l.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// Without a launcher rank 0 serves the metrics of all ranks.
func TestRankServesMetrics(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			t.Cleanup(cancel)
			script := `for r in $(seq 1 $(($WORLD_SIZE - 1))); do RANK=$r LOCAL_RANK=$r "$@" & done
				RANK=0 LOCAL_RANK=0 "$@"; code=$?; wait; exit $code`
			cmd := command(ctx, dir, "sh", append([]string{"-c", script, "sh", bin + "/jacobi-rank"}, set("grid.nx=200",
				"grid.ny=300", "solver.max_iterations=200", "metrics.listen=127.0.0.1:0", "metrics.linger=1m")...)...)
			cmd.Path = "/bin/sh"
			n := strconv.Itoa(size)
			cmd.Env = append(cmd.Env, "WORLD_SIZE="+n, "LOCAL_WORLD_SIZE="+n, "JACOBI_LAUNCHED_BY=torchrun")
			l := startCommand(t, cmd)
			url := metricsURL(l)
			l.waitFor("waiting up to 1m0s for a scrape of the metrics")
			got := scrape(t, url)
			if code, text := l.end(); code != 0 {
				t.Errorf("exit code %d\n%s", code, text)
			}
			agrees(t, got, wholeReport(t, dir))
		})
	}
}
