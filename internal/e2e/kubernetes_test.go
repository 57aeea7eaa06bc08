package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

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
	f, err := os.Open("../../docker/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	byKind := map[string]job{}
	for d := yaml.NewDecoder(f); ; {
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
	container := spec.Template.Spec.Containers[0]
	u := startServer(t)
	password, _ := u.User.Password()
	dir := t.TempDir()
	for name, text := range map[string]string{"run.yaml": byKind["ConfigMap"].Data["run.yaml"],
		"nats_password": password, "run_secret": "a secret of the namespace"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/etc/jacobi/", dir+"/", "/run/secrets/", dir+"/", "nats://jacobi-nats:4222",
		"nats://"+u.Host, "/data/out", dir+"/out")
	small := set("grid.nx=64", "grid.ny=96", "solver.max_iterations=30", "output.dir="+dir+"/out")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmds := make([]*exec.Cmd, spec.Completions)
	outputs := make([]bytes.Buffer, len(cmds))
	for rank := range cmds {
		args := append([]string{}, small...)
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
	want, _ := solve(t, set("grid.nx=64", "grid.ny=96", "solver.max_iterations=30")...)
	if r := readReport(t, filepath.Join(dir, "out")); r.FieldSHA256 != want.sha || len(r.Ranks) != 4 {
		t.Errorf("field %s of %d ranks, want %s of 4", r.FieldSHA256, len(r.Ranks), want.sha)
	}
}
