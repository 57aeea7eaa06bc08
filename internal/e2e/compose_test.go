package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// composed is a Compose project of the files in docker/, with images built on this machine.
type composed struct {
	t       *testing.T
	project string
	dir     string // copy of docker/
	words   []string
	env     []string
}

// composeWords returns the command of Compose: Compose v2, or Debian's docker-compose if that is missing.
func composeWords(t *testing.T) []string {
	t.Helper()
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: the compose cluster: no Docker engine: %v %s", err, firstLine(out))
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skipf("NOT RUN: the compose cluster: %v", err)
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	if err := exec.Command("docker-compose", "version").Run(); err != nil {
		t.Skipf("NOT RUN: the compose cluster: neither docker compose nor docker-compose: %v", err)
	}
	return []string{"docker-compose"}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// startCluster starts four agents, with the NATS servers of the given files in docker/.
func startCluster(t *testing.T, files ...string) *composed {
	t.Helper()
	project := fmt.Sprintf("jacobi-test-%d-%d", os.Getpid(), projects.Add(1))
	c := &composed{t: t, project: project, dir: filepath.Join(t.TempDir(), "docker"), words: composeWords(t)}
	if err := os.CopyFS(c.dir, os.DirFS("../../docker")); err != nil {
		t.Fatal(err)
	}
	for _, used := range []string{"secrets", ".env", "out", "checkpoints", "jetstream"} {
		if err := os.RemoveAll(filepath.Join(c.dir, used)); err != nil {
			t.Fatal(err)
		}
	}
	c.env = append(os.Environ(), "JACOBI_IMAGE=jacobi:local", "NATS_IMAGE=nats:local",
		"PROMETHEUS_IMAGE=prometheus:local", "SLOTS=2")
	images.Do(func() { c.must(exec.Command("sh", "../../docker/local-images.sh", bin)) })
	c.must(exec.Command("sh", filepath.Join(c.dir, "prepare.sh")))
	c.rename()
	for _, f := range files {
		c.words = append(c.words, "-f", filepath.Join(c.dir, f))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the services:\n%s", c.must(c.compose("logs", "--no-color", "--tail", "40")))
		}
		c.must(c.compose("down", "-v", "-t", "5"))
		for _, kind := range []string{"container", "network", "volume"} {
			args := []string{kind, "ls", "-q", "--filter", "label=com.docker.compose.project=" + project}
			if kind == "container" {
				args = append(args, "-a")
			}
			if left := c.must(exec.Command("docker", args...)); left != "" {
				t.Errorf("a %s is left: %s", kind, left)
			}
		}
	})
	c.must(c.compose("up", "-d", "--no-build", "--scale", "node=4"))
	return c
}

// rename replaces the project name that prepare.sh has chosen, so that the project does not clash with another one on
// this machine.
func (c *composed) rename() {
	c.t.Helper()
	file := filepath.Join(c.dir, ".env")
	env, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	const name = "COMPOSE_PROJECT_NAME=jacobi\n"
	if !bytes.Contains(env, []byte(name)) {
		c.t.Fatalf("want %q in .env:\n%s", name, env)
	}
	env = bytes.Replace(env, []byte(name), []byte("COMPOSE_PROJECT_NAME="+c.project+"\n"), 1)
	if err := os.WriteFile(file, env, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *composed) compose(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	c.t.Cleanup(cancel)
	return exec.CommandContext(ctx, c.words[0], append(c.words[1:len(c.words):len(c.words)], args...)...)
}

// must runs a command, which must succeed, and returns its output.
func (c *composed) must(cmd *exec.Cmd) string {
	c.t.Helper()
	cmd.Env = c.env
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%v: %v\n%s%s", cmd.Args, err, &out, &errOut)
	}
	return out.String()
}

// launch returns the command that runs the launcher service with these arguments.
func (c *composed) launch(args ...string) []string {
	return append([]string{"run", "--rm", "-T", "launcher", "--nodes", "--config", "/run.yaml"}, args...)
}

// begin starts the launcher service with these arguments and waits until it sweeps.
func (c *composed) begin(args ...string) *live {
	c.t.Helper()
	cmd := c.compose(c.launch(args...)...)
	cmd.Env = c.env
	l := startCommand(c.t, cmd)
	l.waitFor(progress)
	return l
}

// containers returns the ids of the containers of a service.
func (c *composed) containers(service string) []string {
	c.t.Helper()
	// Compose takes seconds for this list while all cores are busy, so docker is used.
	list := exec.Command("docker", "ps", "--quiet", "--filter", "label=com.docker.compose.service="+service,
		"--filter", "label=com.docker.compose.project="+c.project)
	return strings.Fields(c.must(list))
}

// killNodes kills the containers of n of the four nodes and returns their host names.
func (c *composed) killNodes(n int) (hosts []string) {
	c.t.Helper()
	hosts = c.containers("node") // the host name is the container's short id
	if len(hosts) != 4 {
		c.t.Fatalf("containers %v, want 4", hosts)
	}
	c.must(exec.Command("docker", append([]string{"kill"}, hosts[:n]...)...))
	return hosts[:n]
}

var composeRun = slices.Clip(set("grid.nx=256", "grid.ny=256"))

// images builds the images once for all tests.
var images sync.Once

// projects counts the projects of this process.
var projects atomic.Int64

// When two of four nodes die, a run resumes from its checkpoint if the remaining slots suffice for its ranks. Otherwise
// it ends, says how many slots are missing, and resumes when they are back. Checkpoints are in JetStream or in a
// directory that all containers share. The answer is the answer of one rank, and the cluster leaves nothing behind.
func TestComposeCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "compose.yaml")
	// With rows that travel after each sweep, the run lasts long enough to lose nodes on its way.
	problem := slices.Clip(append(composeRun, set("solver.max_iterations=20000", "checkpoint.every=200",
		"halo.depth=1")...))
	want, _ := solve(t, append(composeRun, "--set", "solver.max_iterations=20000", "-np", "1")...)
	check := func() {
		t.Helper()
		got, r := answerIn(t, filepath.Join(c.dir, "out"))
		if same(t, got, want); r.ResumedAfter == 0 {
			t.Error("the run began again")
		}
	}

	// Eight ranks need all slots of the four nodes.
	eight := append(problem, "-np", "8", "--set", "checkpoint.nats=jacobi", "--max-restarts", "1", "--wait", "2s")
	l := c.begin(append(slices.Clip(eight), "--json")...)
	l.waitFor(`"iterations":\d{4}`) // several checkpoints; lines for people come only every 5 s
	hosts := strings.Join(c.killNodes(2), "|")
	l.ends(1, `rank \d on (`+hosts+`) was lost with its host|rank \d on \S+ failed: `,
		`launcher: no restart: --nodes: 8 ranks need 8 slots, and after 2s there are 4, 4 too few: `,
		`launcher: --restart goes on after sweep \d+, from nats:jacobi`)
	c.must(c.compose("up", "-d", "--no-build", "--no-recreate", "--scale", "node=4"))
	c.must(c.compose(c.launch(append(eight, "--restart")...)...))
	check()

	// Four ranks, one on each node, find four slots on the two remaining nodes.
	four := append(problem, "-np", "4", "--set", "checkpoint.dir=checkpoints", "--max-restarts", "1")
	l = c.begin(append(four, "--map-by", "node")...)
	awaitName(t, filepath.Join(c.dir, "checkpoints"), isCheckpoint, l)
	c.killNodes(2)
	l.ends(0, `launcher: restart 1 of 1: on after sweep \d+, from checkpoints\nlauncher: 4 ranks on \w+, \w+: `)
	check()
}

// When one of three NATS servers dies, a run continues and has the same answer.
func TestComposeClusterOfServers(t *testing.T) {
	t.Parallel()
	long := append(composeRun, set("solver.max_iterations=4000", "halo.depth=8")...)
	c := startCluster(t, "compose.yaml", "compose.cluster.yaml")
	want, _ := solve(t, append(slices.Clip(long), "-np", "1")...)
	c.unprivileged("nats", 1)
	c.unprivileged("nats-3", 1)
	c.unprivileged("node", 4)
	servers := c.unprivileged("nats-2", 1)
	l := c.begin(append(slices.Clip(long), "-np", "8")...)
	c.must(exec.Command("docker", "kill", servers[0]))
	l.ends(0)
	got, _ := answerIn(t, filepath.Join(c.dir, "out"))
	same(t, got, want)
}

// asksPrometheus sends a query to the Prometheus at a host and returns the number of its results.
func asksPrometheus(t *testing.T, host, query string) int {
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
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(readText(t, "../../docker/metrics/dashboard.json")), &d); err != nil {
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
	ids := c.unprivileged("prometheus", 1)
	host := strings.TrimSpace(c.must(exec.Command("docker", "inspect", "--format",
		"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", ids[0])))
	cmd := c.compose(append([]string{"run", "--rm", "-T", "--use-aliases", "-e", "JACOBI_METRICS_LISTEN=:9464",
		"launcher", "-np", "8", "--nodes", "--config", "/run.yaml"}, set(endless...)...)...)
	cmd.Env = c.env
	l := startCommand(t, cmd)
	l.waitFor(progress)
	left := slices.DeleteFunc(dashboardQueries(t), regexp.MustCompile(`jacobi_(gpu|checkpoints)_`).MatchString)
	for deadline := time.Now().Add(limit / 2); len(left) > 0; time.Sleep(time.Second) {
		left = slices.DeleteFunc(left, func(query string) bool { return asksPrometheus(t, host, query) > 0 })
		if time.Now().After(deadline) && len(left) > 0 {
			t.Fatalf("no results of %q", left)
		}
	}
	if n := asksPrometheus(t, host, `count(jacobi_rank_info) == 8`); n != 1 {
		t.Errorf("Prometheus does not know 8 ranks")
	}
	c.must(exec.Command("docker", append([]string{"kill", "--signal", "INT"}, c.unprivileged("launcher", 1)...)...))
	l.ends(130)
}
