package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// composed is a compose project of the files in docker/, with images made on this machine.
type composed struct {
	t     *testing.T
	dir   string // copy of docker/
	words []string
	env   []string
}

// composeWords returns how Compose is called here: Compose v2, else Debian's docker-compose.
func composeWords(t *testing.T) []string {
	t.Helper()
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: the compose cluster: no Docker engine: %v %s", err, firstLine(out))
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	if err := exec.Command("docker-compose", "version").Run(); err != nil {
		t.Skipf("NOT RUN: the compose cluster: neither docker compose nor docker-compose: %v", err)
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skipf("NOT RUN: the compose cluster: %v", err)
	}
	return []string{"docker-compose"}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// startCluster brings four agents up, with the NATS servers of the given files of docker/.
func startCluster(t *testing.T, files ...string) *composed {
	t.Helper()
	c := &composed{t: t, dir: filepath.Join(t.TempDir(), "docker"), words: composeWords(t)}
	project := fmt.Sprintf("jacobi-test-%d", os.Getpid())
	if err := os.CopyFS(c.dir, os.DirFS("../../docker")); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"secrets", ".env", "out"} { // of somebody who uses the folder
		if err := os.RemoveAll(filepath.Join(c.dir, secret)); err != nil {
			t.Fatal(err)
		}
	}
	c.env = append(os.Environ(), "JACOBI_IMAGE=jacobi:local", "NATS_IMAGE=nats:local", "SLOTS=2", "COMPOSE_PROJECT_NAME="+project)
	images.Do(func() { c.must(exec.Command("sh", "../../docker/local-images.sh", staticBin(t))) })
	c.must(exec.Command("sh", filepath.Join(c.dir, "prepare.sh")))
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

// staticBin builds the programs for containers: names are looked up without the C library's modules.
func staticBin(t *testing.T) string {
	t.Helper()
	if os.Getenv("E2E_BIN") != "" {
		return bin
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-tags", "netgo,osusergo", "-o", dir+"/", "jacobi/cmd/launcher", "jacobi/cmd/jacobi-rank")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, out)
	}
	return dir
}

func (c *composed) compose(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	c.t.Cleanup(cancel)
	return exec.CommandContext(ctx, c.words[0], append(c.words[1:len(c.words):len(c.words)], args...)...)
}

// must runs a command that has to succeed and returns its output.
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

// begin starts the launcher service with these arguments and waits until it sweeps.
func (c *composed) begin(args ...string) *live {
	c.t.Helper()
	words := append([]string{"run", "--rm", "-T", "launcher", "-np", "8", "--nodes", "--config", "/run.yaml"}, args...)
	cmd := c.compose(words...)
	cmd.Env = c.env
	l := startCommand(c.t, cmd)
	l.waitFor(`sweeps`)
	return l
}

func (c *composed) sha() string {
	c.t.Helper()
	return readReport(c.t, filepath.Join(c.dir, "out")).FieldSHA256
}

var composeRun = slices.Clip(set("grid.nx=256", "grid.ny=256"))

// images makes the images once for all tests.
var images sync.Once

// Eight ranks on four containers give the answer of one rank. A container that dies ends the run with a clear error, and the
// agents that are left take no slots with them. Nothing is left when the cluster goes down.
func TestComposeCluster(t *testing.T) {
	c := startCluster(t, "compose.yaml")
	want, _ := solve(t, append(composeRun, "--set", "solver.max_iterations=300", "-np", "1")...)
	short := append([]string{"run", "--rm", "-T", "launcher", "-np", "8", "--nodes", "--config", "/run.yaml", "--set", "solver.max_iterations=300"}, composeRun...)
	c.must(c.compose(short...))
	if got := c.sha(); got != want.sha {
		t.Errorf("field %s, want %s", got, want.sha)
	}
	l := c.begin(append(composeRun, set("solver.max_iterations=100000000", "solver.tolerance=0", "halo.timeout=20s")...)...)
	nodes := strings.Fields(c.must(c.compose("ps", "-q", "node")))
	if len(nodes) != 4 {
		t.Fatalf("containers %v, want 4", nodes)
	}
	killed := time.Now()
	c.must(exec.Command("docker", "kill", nodes[2]))
	code, output := l.end()
	if took := time.Since(killed); took > 30*time.Second {
		t.Errorf("the run ended %v after the kill", took)
	}
	host := nodes[2][:12]
	if code != 1 || !regexp.MustCompile(`rank \d on `+host+` was lost with its host|rank \d on \S+ failed: `).MatchString(output) {
		t.Errorf("exit code %d, want 1 and a word of %s in\n%s", code, host, output)
	}
	// The others are free again; restart brings back the fourth.
	c.must(c.compose("up", "-d", "--no-build", "--no-recreate", "--scale", "node=4"))
	c.must(c.compose(short...))
	if got := c.sha(); got != want.sha {
		t.Errorf("after the kill: field %s, want %s", got, want.sha)
	}
}

// A run goes on, to the same answer, when one of three NATS servers dies.
func TestComposeClusterOfServers(t *testing.T) {
	long := append(composeRun, set("solver.max_iterations=4000", "halo.depth=8")...)
	c := startCluster(t, "compose.yaml", "compose.cluster.yaml")
	want, _ := solve(t, append(slices.Clip(long), "-np", "1")...)
	l := c.begin(long...)
	servers := strings.Fields(c.must(c.compose("ps", "-q", "nats-2")))
	if len(servers) != 1 {
		t.Fatalf("containers %v, want 1", servers)
	}
	c.must(exec.Command("docker", "kill", servers[0]))
	if code, output := l.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, output)
	}
	if got := c.sha(); got != want.sha {
		t.Errorf("field %s, want %s", got, want.sha)
	}
}
