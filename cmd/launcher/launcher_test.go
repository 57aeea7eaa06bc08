package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/metrics"
	"jacobi/internal/run/launch"
)

// command runs a command line in an empty directory, without keys in the environment.
func command(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "JACOBI_") {
			t.Setenv(name, "") // restores the value after the test
			os.Unsetenv(name)
		}
	}
	t.Chdir(t.TempDir())
	var out, errOut bytes.Buffer
	cmd := newCommand(&out, &errOut)
	cmd.SetArgs(mpiArgs(args))
	err = cmd.Execute()
	if errOut.Len() > 0 {
		t.Errorf("stderr: %s", &errOut)
	}
	return out.String(), err
}

// small are flags for a small mesh.
var small = []string{"--set", "grid.nx=64", "--set", "grid.ny=128"}

func TestNPAcceptsTheSpellingsOfMPI(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"-np", "8"}, []string{"--np", "8"}},
		{[]string{"-np=8", "--config", "f"}, []string{"--np=8", "--config", "f"}},
		{[]string{"-n", "8", "--np", "9", "-npx"}, []string{"-n", "8", "--np", "9", "-npx"}},
		{[]string{"-np8", "--", "-np8"}, []string{"--np=8", "--", "-np8"}},
		{[]string{"--", "-np"}, []string{"--", "-np"}},
		{[]string{"-host", "a:4", "-map-by=node", "-hostfile", "f"},
			[]string{"--host", "a:4", "--map-by=node", "--hostfile", "f"}},
	} {
		if got := mpiArgs(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q became %q, want %q", c.args, got, c.want)
		}
	}
	for _, np := range [][]string{{"-np", "3"}, {"-np=3"}, {"-np3"}, {"-n", "3"}, {"-n3"}, {"--np", "3"}, {"--np=3"}} {
		args := slices.Concat(np, small, []string{"--set", "run.ranks=2", "--dry-run"})
		if out, err := command(t, args...); err != nil || !strings.Contains(out, "\n  ranks: 3\n") {
			t.Errorf("%q: error %v, output\n%s", np, err, out)
		}
	}
}

// A soak of CPUs has a mesh that takes seconds, unless the user has named one.
func TestMeshOfASoak(t *testing.T) {
	for args, want := range map[string]int{"": 1024, "grid.nx=2048": 2048, "problem.top=1": 513} {
		o := soakOptions{options: options{set: append(strings.Fields(args), "device.backend=cpu")}}
		from, err := o.sources(o.set)
		if err != nil {
			t.Fatal(err)
		}
		from.Environ, from.Decide = nil, o.decide
		if c, err := configs.Load(from); err != nil || c.Grid.NX != want || c.Grid.NY != want || c.Run.Ranks != 1 {
			t.Errorf("%s: %+v, %d ranks, error %v; want %d points a side and 1 rank", args, c.Grid,
				c.Run.Ranks, err, want)
		}
	}
}

// The plan has the ranks that there are rows for, and says that the others stay idle.
func TestDryRunWithIdleRanks(t *testing.T) {
	out, err := command(t, append(small, "-np", "9223372036854775807", "--dry-run")...)
	want := "\n# 9223372036854775791 of 9223372036854775807 ranks stay idle: grid.ny 128 has rows for 16\n"
	if err != nil || !strings.Contains(out, "\n# 16 ranks on ") || !strings.Contains(out, want) {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"--dryrun", "unknown flag --dryrun: did you mean --dry-run?"},
		{"-q -v", "--verbose and --quiet: only one of them is allowed"},
		{"-np x", `--np "x": must be an integer`},
		{"-np 4 --host a:2,b", "-np 4 ranks need 4 slots, and there are 3: a 2, b 1"},
		{"--host a:9 --hostfile f", "--host and --hostfile: only one of them is allowed"},
		{"--timeout 10", `--timeout "10": must be a duration with its unit, such as 30s or 10m`},
		{"--timeout -1s", "--timeout -1s: must be a positive duration, as in 10m"},
		{"--tag-output=job", `--tag-output "job": allowed are rank, stream and none`},
		{"completion csh", `completion "csh": allowed are bash, zsh and fish`},
		{"completion", "completion: the shell is missing; see launcher completion --help"},
		{"-np2x", `--np "p2x": must be an integer`},
		{"view", "view: the directory of a run or the URL of its NATS server is missing; see launcher view --help"},
		{"nodes here", `nodes: argument "here" is one too many; see launcher nodes --help`},
	} {
		args := strings.Fields(c.args)
		if !slices.Contains([]string{"view", "nodes", "completion"}, args[0]) {
			args = append(slices.Clone(small), args...)
		}
		_, err := command(t, args...)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v\nwant %s", c.args, err, c.want)
		}
	}
}

func TestDryRunPrintsARunFileAndStartsNothing(t *testing.T) {
	args := append(small, "-np", "3", "--dry-run", "--set", "halo.depth=2", "--set",
		"nats.url=nats://me:hunter2@host:4222", "--set", "problem.preset=dirichlet", "--set", "solver.method=jacobi",
		"--set", "grid.dtype=float32")
	out, err := command(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# 3 ranks on " + host + ": dirichlet, 64 x 128 float32, jacobi\n",
		"# It writes out/field.npy (32 KiB), field.png, history.csv, report.json\n",
		"# Halo depth 2 (halo.depth)\n",
		fmt.Sprintf("#   0     %s    0 of 3      [1, 40)    39      ", host),
		fmt.Sprintf("#   2     %s    2 of 3      [80, 127)  47      ", host),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "hunter2") {
		t.Error("the password shows")
	}
	if entries, err := os.ReadDir("."); len(entries) != 0 || err != nil {
		t.Errorf("left behind: %v, error %v", entries, err)
	}

	file := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := command(t, "--config", file, "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	if after := func(s string) string { return s[strings.Index(s, "#   rank"):] }; after(again) != after(out) {
		t.Errorf("the output, run again, gives\n%s\nwant\n%s", again, out)
	}
}

// Restarts without checkpoints begin again, and a dry run says so.
func TestDryRunWithRestartsButNoCheckpoints(t *testing.T) {
	args := append(slices.Clone(small), "--dry-run", "--max-restarts", "3")
	const want = "\n# Warning: --max-restarts 3: no checkpoints are saved, and so a restart begins again with the " +
		"initial field; checkpoint.every and checkpoint.dir, or checkpoint.nats, save them\n"
	if out, err := command(t, args...); err != nil || !strings.Contains(out, want) {
		t.Errorf("error %v, output\n%s", err, out)
	}
	saved := append(args, "--set", "checkpoint.every=10m", "--set", "checkpoint.dir=checkpoints")
	if out, err := command(t, saved...); err != nil || strings.Contains(out, "max-restarts") {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

func TestDryRunShowsWhereRanksRun(t *testing.T) {
	for _, c := range []struct{ by, want string }{
		{"slot", "0 of 2, 1 of 2, 0 of 1"},
		{"node", "0 of 2, 0 of 1, 1 of 2"},
	} {
		out, err := command(t, append(small, "-np", "3", "-host", "a:2,b:3", "--map-by", c.by, "--dry-run")...)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "# 3 ranks on a, b: ") {
			t.Errorf("no hosts in\n%s", out)
		}
		var places []string
		for _, m := range regexp.MustCompile(`(?m)^#   \d +([ab]) +(\d of \d) `).FindAllStringSubmatch(out, -1) {
			places = append(places, m[2])
		}
		if got := strings.Join(places, ", "); got != c.want {
			t.Errorf("--map-by %s: local ranks %s, want %s, in\n%s", c.by, got, c.want, out)
		}
	}
}

func TestDryRunOfARunThatCannotStart(t *testing.T) {
	out, err := command(t, "--dry-run", "--set", "grid.nx=2000000", "--set", "grid.ny=2000000")
	if !strings.Contains(out, "# Memory: 29 TiB for fields and halos") || err == nil ||
		!strings.Contains(err.Error(), "are needed") {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

func TestExportedKeysReachTheLauncherToo(t *testing.T) {
	t.Setenv("JACOBI_GRID_NX", "1")
	out, err := command(t, append(small[2:], "-x", "JACOBI_GRID_NX=77", "--dry-run")...)
	if err != nil || !strings.Contains(out, "\n  nx: 77\n") {
		t.Errorf("error %v, output\n%s", err, out)
	}
}

// Command lines that are nearly right are refused with what is right.
func TestClumsyCommandLines(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--config"}, "--config: its value is missing, as in --config FILE"},
		{[]string{"-Z"}, "unknown flag -Z; see launcher --help"},
		{[]string{"--confg", "a.yaml"}, "unknown flag --confg: did you mean --config?"},
		{[]string{"--nx=9"}, "unknown flag --nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"--grid.nx=9"}, "unknown flag --grid.nx: keys are set with --set grid.nx=VALUE"},
		{[]string{"run.yaml", "extra"}, `argument "run.yaml": a run file is given with --config, a key with --set; ` +
			`launcher --help lists commands`},
		{[]string{"benhc"}, `argument "benhc": did you mean bench?`},
		{[]string{"study", "run.yaml"}, `study: argument "run.yaml" belongs to no flag; see launcher study --help`},
		{[]string{"doctor", "run.yaml"}, `doctor: argument "run.yaml" is one too many; see launcher doctor --help`},
		{[]string{"help", "nx"}, `help "nx": did you mean grid.nx?`},
		{[]string{"help", "solver.methd"}, `help "solver.methd": did you mean solver.method?`},
		{[]string{"help", "zzz"}, `help "zzz": no command, key or section of the run file has this name`},
	} {
		if _, err := command(t, c.args...); err == nil || err.Error() != c.want {
			t.Errorf("launcher %q\ngot  %v\nwant %s", c.args, err, c.want)
		}
	}
}

func TestRestartCommand(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bin/launcher|-np|8", "bin/launcher -np 8 --restart"},
		{"launcher|--restart|--set|problem.top=sin(pi*x)", "launcher --set 'problem.top=sin(pi*x)' --restart"},
		{"launcher|--resume|old|-np|2|--resume=older", "launcher -np 2 --restart"},
		{"launcher|--set|run.name=it's $HOME", `launcher --set 'run.name=it'\''s $HOME' --restart`},
		{"launcher|--set|output.field=", "launcher --set output.field= --restart"},
	} {
		args := strings.Split(c.args, "|")
		if got := restartCommand(args); got != c.want {
			t.Errorf("%q: %s, want %s", args, got, c.want)
		}
	}
	args := []string{"printf", `%s\n`, "a b", `"$(echo x)"`, "", "~", "\\", "*", "é", "'"}
	out, err := exec.Command("sh", "-c", restartCommand(args)).Output()
	if want := strings.Join(append(args[2:], "--restart", ""), "\n"); err != nil || string(out) != want {
		t.Errorf("a shell reads %q, want %q; %v", out, want, err)
	}
}

func variable(t *testing.T, s configs.Start) string {
	t.Helper()
	v, err := s.Variable()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Ranks are asked for statistics where an agent serves metrics. If it could not read them, the ranks start without.
func TestPrepareMeasuredRanks(t *testing.T) {
	conn := wire.Over(rostertest.Start(t, 0).Dial())
	for secret, warning := range map[string]string{
		"inline:0123456789abcdef": "",
		"inline:short":            "nats.secret_file: a secret of 5 bytes; it must have at least 16",
	} {
		core, logs := observer.New(zap.WarnLevel)
		done := 0
		prepare := measuredRanks{metrics.NewNode(), conn, zap.New(core)}.prepare(
			func(context.Context, *launch.Spec) (func(), error) { return func() { done++ }, nil })
		start := configs.Start{Planned: configs.Planned{Config: configs.Default()}}
		start.Run.Ranks, start.NATS.SecretFile = 2, secret
		env := []string{variable(t, start)}
		spec := &launch.Spec{Env: env, Ranks: []roster.Identity{{RunID: "run", Rank: 1, Size: 2}}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		end, err := prepare(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		end()
		var said []any
		for _, line := range logs.All() {
			said = append(said, line.Message, line.ContextMap()["run"], line.ContextMap()["error"])
		}
		start.Stats = warning == ""
		wantEnv, wantSaid := []string{variable(t, start)}, []any(nil)
		if warning != "" {
			wantSaid = []any{"ranks without metrics", "run", warning}
		}
		if done != 1 || !reflect.DeepEqual(spec.Env, wantEnv) || !reflect.DeepEqual(said, wantSaid) {
			t.Errorf("%s: ended %d times, environment %q, log %q; want once, %q, %q", secret, done, spec.Env, said,
				wantEnv, wantSaid)
		}
	}
}
