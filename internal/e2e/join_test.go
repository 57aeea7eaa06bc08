package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/roster/rostertest"
)

// startServer starts a NATS server as a user would.
func startServer(t *testing.T) *url.URL {
	t.Helper()
	s, err := natsserver.Start(natsserver.Options{Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	u, err := url.Parse(s.NATS().URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// startRanks starts ranks without a launcher, as a scheduler would, and returns their exit codes and outputs. prepare
// returns the command of the i-th of them.
func startRanks(t *testing.T, u *url.URL, size int, ranks []int, prepare func(i int) (dir string, args []string)) (
	codes []int, outputs []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmds := make([]*exec.Cmd, len(ranks))
	texts := make([]bytes.Buffer, len(ranks))
	for i, rank := range ranks {
		dir, args := prepare(i)
		cmds[i] = command(ctx, dir, "jacobi-rank", append(args, "--set", fmt.Sprintf("run.ranks=%d", size))...)
		cmds[i].Env = append(cmds[i].Env, fmt.Sprintf("JACOBI_RANK=%d", rank), fmt.Sprintf("JACOBI_SIZE=%d", size),
			fmt.Sprintf("JACOBI_LOCAL_RANK=%d", rank),
			fmt.Sprintf("JACOBI_LOCAL_SIZE=%d", size), "JACOBI_RUN_ID=by-hand", "JACOBI_NATS_URL="+u.String())
		cmds[i].Stdout, cmds[i].Stderr = &texts[i], &texts[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		_ = cmd.Wait() // ProcessState is checked by the caller
		codes = append(codes, cmd.ProcessState.ExitCode())
		outputs = append(outputs, texts[i].String())
	}
	return codes, outputs
}

// A missing rank, a duplicate rank, a different configuration and a file that differs in one bit of one value each end
// all ranks with a clear error in bounded time.
func TestRanksThatDoNotFit(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct { // want is a pattern
		size  int
		ranks []int
	}{
		`rank 1 of 3 did not join within 3s`: {3, []int{0, 2}},
		`rank 0`:                             {3, []int{1, 2}},
		`rank 1`:                             {3, []int{0, 1, 1}},
		`configuration`:                      {2, []int{0, 1}},
		`problem.source "f.npy": rank 0 \(host .*read different files; a file must be the same for `: {2, []int{0, 1}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			codes, outputs := startRanks(t, startServer(t), c.size, c.ranks, func(i int) (string, []string) {
				dir, iterations := t.TempDir(), 30
				switch {
				case want == "configuration":
					iterations += i
				case strings.Contains(want, "f.npy"):
					writeSource(t, dir, i == 1)
					return dir, fileProblem("halo.timeout=3s")
				}
				return dir, set("grid.nx=64", "grid.ny=80", "halo.timeout=3s",
					fmt.Sprintf("solver.max_iterations=%d", iterations))
			})
			for i, code := range codes {
				if code == 0 || !regexp.MustCompile(want).MatchString(outputs[i]) {
					t.Errorf("rank %d: exit code %d, want a failure that matches %q:\n%s", c.ranks[i], code, want,
						outputs[i])
				}
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("took %v with halo.timeout 3s", took)
			}
		})
	}
}

// job is the part of the Job in docker/kubernetes.yaml that the test uses.
type job struct {
	Kind string
	Data map[string]string
	Spec struct {
		CompletionMode           string `yaml:"completionMode"`
		Completions, Parallelism int
		Template                 struct {
			Spec struct {
				Containers []struct {
					Command, Args []string
					Env           []struct {
						Name, Value string
						ValueFrom   struct {
							FieldRef struct {
								FieldPath string `yaml:"fieldPath"`
							} `yaml:"fieldRef"`
						} `yaml:"valueFrom"`
					}
				}
			}
		}
	}
}

// Processes with the arguments, variables and run file of the manifest have the answer of one rank. Paths and the
// server are replaced by those of this machine.
func TestKubernetesJobAsProcesses(t *testing.T) {
	byKind := map[string]job{}
	for d := yaml.NewDecoder(strings.NewReader(readText(t, "../../docker/kubernetes.yaml"))); ; {
		var j job
		if err := d.Decode(&j); err != nil {
			break // the end of the file; missing documents are detected below
		}
		byKind[j.Kind] = j
	}
	spec := byKind["Job"].Spec
	if spec.CompletionMode != "Indexed" || spec.Completions != 4 || spec.Parallelism != 4 ||
		len(spec.Template.Spec.Containers) != 1 {
		t.Fatalf("Job %+v", spec)
	}
	container, u, dir := spec.Template.Spec.Containers[0], startServer(t), t.TempDir()
	password, _ := u.User.Password()
	for name, text := range map[string]string{"run.yaml": byKind["ConfigMap"].Data["run.yaml"],
		"nats_password": password, "run_secret": "a secret of the namespace"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/etc/jacobi/", dir+"/", "/run/secrets/", dir+"/", "nats://jacobi-nats:4222",
		"nats://"+u.Host, "/data/out", dir+"/out")
	small := set("grid.nx=64", "grid.ny=96", "solver.max_iterations=30")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmds := make([]*exec.Cmd, spec.Completions)
	outputs := make([]bytes.Buffer, len(cmds))
	for rank := range cmds {
		args := slices.Concat(small, set("output.dir="+dir+"/out"))
		for _, a := range container.Args {
			args = append(args, here.Replace(a))
		}
		cmds[rank] = command(ctx, dir, filepath.Base(container.Command[0]), args...)
		cmds[rank].Env = append(cmds[rank].Env, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", rank))
		for _, e := range container.Env {
			value := here.Replace(e.Value)
			if e.ValueFrom.FieldRef.FieldPath != "" { // a UID
				value = "b1f4e1c2-3d7e-4a8f-9a55-0c6f0c2f7f4d"
			}
			cmds[rank].Env = append(cmds[rank].Env, e.Name+"="+value)
		}
		cmds[rank].Stdout, cmds[rank].Stderr = &outputs[rank], &outputs[rank]
		if err := cmds[rank].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for rank, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("rank %d: %v\n%s", rank, err, &outputs[rank])
		}
	}
	want, _ := solve(t, small...)
	got, r := answerIn(t, filepath.Join(dir, "out"))
	if same(t, got, want); len(r.Ranks) != 4 {
		t.Errorf("%d ranks, want 4", len(r.Ranks))
	}
}

// Ranks that do not see the launcher's directory send their rows over NATS. The files have the same bytes whether all
// ranks do so or only some. Their nodes keep no files.
func TestFilesOverNATS(t *testing.T) {
	t.Parallel()
	// 2.9 MB: several messages per rank
	keys := []string{"grid.nx=300", "grid.ny=1200", "grid.dtype=float64", "solver.max_iterations=20"}
	want := t.TempDir()
	mustRun(t, want, "launcher", onRanks(1, keys...)...)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// near is the number of agents that start in the launcher's directory, most max_payload of the server; 0 for the
	// default.
	for near, most := range []int{64 << 10, 0} {
		t.Run(fmt.Sprintf("%d near", near), func(t *testing.T) {
			u, err := url.Parse(rostertest.StartWith(t, server.Options{MaxPayload: int32(most)}).URL())
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var far []string
			for i := range 2 {
				at := dir
				if i >= near {
					at = t.TempDir()
					far = append(far, at)
				}
				startAgent(t, at, u, "--slots", "2")
			}
			out := mustRun(t, dir, "launcher", onNodes(u, onRanks(4, keys...)...)...)
			for _, name := range []string{"field.npy", "history.csv", "field.png"} {
				if readText(t, dir, "out", name) != readText(t, want, "out", name) {
					t.Errorf("%s is not that of one rank here", name)
				}
			}
			ways := map[string]int{}
			for _, r := range readReport(t, filepath.Join(dir, "out")).Ranks {
				ways[r.Output]++
			}
			if ways["file"] != 2*near || ways["nats to "+host] != 4-2*near {
				t.Errorf("ways of the rows %v, want %d over NATS", ways, 4-2*near)
			}
			if text := fmt.Sprintf("Rows sent      %d x nats to %s", 4-2*near, host); !strings.Contains(out.stdout,
				text) {
				t.Errorf("no %q in\n%s", text, out.stdout)
			}
			if entries, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(entries) != 4 {
				t.Errorf("files %v, want 4 (%v)", entries, err)
			}
			for _, at := range far {
				if left, err := os.ReadDir(at); err != nil || len(left) != 0 {
					t.Errorf("%v lies on a node (%v)", left, err)
				}
			}
		})
	}
}
