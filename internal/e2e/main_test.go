// Package e2e tests the two programs as a user runs them: it builds, starts, interrupts and kills them, and reads their
// output.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/internal/compute/results"
	"jacobi/internal/observe/output"
)

// bin is the folder with the built programs.
var bin string

func TestMain(m *testing.M) {
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin") // has Debian's programs for tests of several hosts
	os.Exit(func() int {
		if bin = os.Getenv("E2E_BIN"); bin != "" { // built elsewhere, for machines without Go
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "jacobi-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin = dir
		if err := makeBuild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// version is that of all programs that the tests build.
const version = "v9"

// makeBuild builds the programs as users do, but without trimming paths, so that the packages compiled for the tests
// are reused.
func makeBuild(dir string, variables ...string) error {
	return makeTarget("build", append(variables, "BIN="+dir)...)
}

func makeTarget(target string, variables ...string) error {
	out, err := exec.Command("make", append([]string{"-C", "../..", target, "TRIM=", "VERSION=" + version},
		variables...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make %s: %w\n%s", target, err, out)
	}
	return nil
}

// outcome is the result of a finished command as a user sees it.
type outcome struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// limit bounds the time of every command. No command should come near it.
const limit = 6 * time.Minute

// command prepares a program in dir. The only JACOBI_ variables in its environment make the CPU sweep gtc2019 in
// float32 by Jacobi's method, unless a test says otherwise: the tests are the same with and without a GPU, and most of
// them count sweeps.
func command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	if !filepath.IsAbs(program) {
		program = filepath.Join(bin, program)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "JACOBI_DEVICE_BACKEND=cpu", "JACOBI_SOLVER_METHOD=jacobi",
		"JACOBI_PROBLEM_PRESET=gtc2019", "JACOBI_GRID_DTYPE=float32")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "JACOBI_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// run runs a program and waits for its end.
func run(t *testing.T, dir, program string, args ...string) outcome {
	t.Helper()
	return runWith(t, nil, dir, program, args...)
}

// runWith is run with additional environment variables.
func runWith(t *testing.T, env []string, dir, program string, args ...string) outcome {
	t.Helper()
	ctx := limited(t)
	cmd := command(ctx, dir, program, args...)
	cmd.Env = append(cmd.Env, env...)
	return finish(t, ctx, cmd)
}

// limited returns a context that ends after limit, or with the test.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// runNatural is run without the keys that command gives to most tests, but for the device: as users begin.
func runNatural(t *testing.T, dir, program string, args ...string) outcome {
	t.Helper()
	ctx := limited(t)
	cmd := command(ctx, dir, program, args...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
		return strings.HasPrefix(v, "JACOBI_SOLVER_") || strings.HasPrefix(v, "JACOBI_PROBLEM_") ||
			strings.HasPrefix(v, "JACOBI_GRID_")
	})
	return finish(t, ctx, cmd)
}

// mustRun is run of a program that must succeed.
func mustRun(t *testing.T, dir, program string, args ...string) outcome {
	t.Helper()
	out := run(t, dir, program, args...)
	if out.code != 0 {
		t.Fatalf("%s %v: exit code %d\n%s%s", program, args, out.code, out.stdout, out.stderr)
	}
	return out
}

// fails checks the exit code of a command and that its stderr has a text.
func (o outcome) fails(t *testing.T, code int, text string) {
	t.Helper()
	if o.code != code || !strings.Contains(o.stderr, text) {
		t.Errorf("exit code %d\n%s%s\nwant %d and %q", o.code, o.stdout, o.stderr, code, text)
	}
}

// finish runs a command and waits for its end.
func finish(t *testing.T, ctx context.Context, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v\nstdout:\n%s\nstderr:\n%s", cmd.Args, limit, &stdout, &stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(start)}
}

// report is the part of report.json that tests check.
type report struct {
	Results      *results.Results     `json:"results"`
	Sweeps       int                  `json:"sweeps"`
	StopReason   string               `json:"stop_reason"`
	Verdict      string               `json:"verdict"`
	Norm         float64              `json:"norm"`
	Base         float64              `json:"base"`
	FieldHash    string               `json:"field_hash"`
	Decisive     *decisive            `json:"decisive"`
	Residual     *residual            `json:"residual"`
	Accuracy     accuracy             `json:"accuracy"`
	ProbeErrors  output.Probed        `json:"probe_errors"`
	Depth        int                  `json:"depth"`
	DepthReason  string               `json:"depth_reason"`
	Idle         string               `json:"idle"`
	Balance      string               `json:"balance"`
	ResumedAfter int                  `json:"resumed_after"`
	Aggregates   int                  `json:"aggregates"`
	Series       *seriesReport        `json:"series"`
	Probed       map[string][]float64 `json:"probed"`
	Ranks        []rankReport         `json:"ranks"`
}

// seriesReport is the part of a report about a series of fields.
type seriesReport struct {
	Every   int    `json:"every"`
	Files   string `json:"files"`
	Written int    `json:"written"`
	Failed  int    `json:"failed"`
	Sweeps  int    `json:"sweeps"`
	Index   string `json:"index,omitempty"`
	Error   string `json:"error,omitempty"`
}

// decisive is the norm that ended a run.
type decisive struct {
	Sweep int     `json:"sweep"`
	Norm  float64 `json:"norm"`
}

// residual is the norm as other solvers state it.
type residual struct {
	Norm     float64 `json:"norm"`
	Relative float64 `json:"relative"`
}

// accuracy is the estimated error of the solution.
type accuracy struct {
	Error float64                 `json:"error"`
	Mesh  *output.MeshErrorReport `json:"mesh"`
}

// rankReport is the part of a report about one rank.
type rankReport struct {
	Rank        int    `json:"rank"`
	Stripe      [2]int `json:"stripe"`
	Device      string `json:"device"`
	Kernel      string `json:"kernel"`
	Host        string `json:"host"`
	PID         int    `json:"pid"`
	GPU         gpu    `json:"gpu"`
	MemoryBytes int64  `json:"memory_bytes"`
	Output      string `json:"output"`
	RSSBytes    int64  `json:"rss_bytes"`
	// RefusedMessages counts messages of others.
	RefusedMessages int                   `json:"refused_messages"`
	Transports      map[string]linkReport `json:"transports"`
}

// linkReport is the part of a report about one side of a rank.
type linkReport struct {
	Neighbour int    `json:"neighbour"`
	Transport string `json:"transport"`
	Why       string `json:"why"`
	Direct    *struct {
		Lost          int    `json:"lost"`
		Refused       int    `json:"refused"`
		Reason        string `json:"reason"`
		Plain, Packed uint64
	} `json:"direct"`
	Traffic *traffic `json:"traffic"`
	NATS    *struct {
		Plain, Packed uint64
	} `json:"nats"`
}

// traffic is the part of a report about the rows of a link. Times are nil where they are not known.
type traffic struct {
	Exchanges int      `json:"exchanges"`
	Bytes     int      `json:"bytes"`
	CopyOut   *float64 `json:"copy_out_seconds"`
	Send      *float64 `json:"send_seconds"`
	CopyIn    *float64 `json:"copy_in_seconds"`
}

// gpu is the part of a report about a rank's GPU.
type gpu struct {
	Index    int    `json:"index"`
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	PCIBusID string `json:"pci_bus_id"`
	Why      string `json:"why"`
	Cores    string `json:"cores"`
}

// answer is the part of a run's result that must not depend on ranks, placement, transport, depth, backend or restarts.
type answer struct {
	sha, history string
	sweeps       int
	reason       string
}

// solve runs the launcher, which must succeed, and returns the run's answer and report.
func solve(t *testing.T, args ...string) (answer, report) {
	t.Helper()
	return solveWith(t, nil, args...)
}

// exits are the exit codes of runs that wrote all files, by the verdict of the report.
var exits = map[string]int{"met": 0, "done": 0, "missed": 4}

// solveWith is solve with an environment. The exit code has to be that of the verdict.
func solveWith(t *testing.T, env []string, args ...string) (answer, report) {
	t.Helper()
	dir := t.TempDir()
	out := runWith(t, env, dir, "launcher", args...)
	if out.code != 0 && out.code != exits["missed"] {
		t.Fatalf("launcher %v: exit code %d\nstdout:\n%s\nstderr:\n%s", args, out.code, out.stdout, out.stderr)
	}
	got, r := answerIn(t, filepath.Join(dir, "out"))
	if want, ok := exits[r.Verdict]; !ok || out.code != want {
		t.Errorf("launcher %v: exit code %d, and the verdict %s has %d", args, out.code, r.Verdict, want)
	}
	return got, r
}

// answerIn returns the answer and the report of the run whose outputs are in dir.
func answerIn(t *testing.T, dir string) (answer, report) {
	t.Helper()
	r := readReport(t, dir)
	return answer{r.FieldHash, readText(t, dir, "history.csv"), r.Sweeps, r.StopReason}, r
}

// same checks that an answer is the wanted one. what says whose it is.
func same(t *testing.T, got, want answer, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v: %d iterations (%s), field %s; want %d (%s), %s; histories equal: %v", what, got.sweeps,
			got.reason, got.sha, want.sweeps, want.reason, want.sha, got.history == want.history)
	}
}

// writeText writes a file with this path, given by its elements, and makes its directory.
func writeText(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// readText returns the contents of the file with this path, given by its elements.
func readText(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func readReport(t *testing.T, dir string) report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("report.json: %v\n%s", err, data)
	}
	return r
}

// with returns all keys of a run, in new memory.
func with(keys []string, more ...string) []string { return slices.Concat(keys, more) }

// onRanks returns the launcher arguments for np ranks with these keys.
func onRanks(np any, keys ...string) []string {
	return slices.Clip(append(set(keys...), "-np", fmt.Sprint(np)))
}

// set turns "key=value" pairs into launcher arguments. Appending to them never writes into memory that others share.
func set(pairs ...string) []string {
	var args []string
	for _, p := range pairs {
		args = append(args, "--set", p)
	}
	return slices.Clip(args)
}
