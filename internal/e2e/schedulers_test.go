package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var scheduled = set("grid.nx=200", "grid.ny=300", "solver.max_iterations=200")

// answersAs checks the outcome of a run of the problem scheduled, whose files are in dir.
func answersAs(t *testing.T, want answer, dir string, out outcome, ranks int) report {
	t.Helper()
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	got, r := answerIn(t, dir)
	if got != want || len(r.Ranks) != ranks {
		t.Errorf("field %s of %d ranks, want %s of %d, with the same norms", got.sha, len(r.Ranks), want.sha, ranks)
	}
	if n := strings.Count(out.stdout, r.FieldHash); n != 1 {
		t.Errorf("the summary is shown %d times in\n%s", n, out.stdout)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return r
}

// installed returns the path of an optional Debian program.
func installed(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NOT RUN: %s: %v", t.Name(), err)
	}
	return path
}

// The mpirun of either MPI starts ranks as well as the launcher does, without further options. Ranks without rows end
// with the others. Ranks also measure, and end with the exit code of a missed tolerance.
func TestMPIRunStartsRanks(t *testing.T) {
	want, _ := solve(t, append(scheduled, "-np", "1")...)
	few := set("grid.nx=200", "grid.ny=20", "solver.max_iterations=200")
	wantFew, _ := solve(t, append(few, "-np", "1")...)
	for program, options := range map[string][]string{
		"mpirun.openmpi": {"--allow-run-as-root", "--oversubscribe"}, "mpiexec.hydra": nil,
	} {
		t.Run(program, func(t *testing.T) {
			path := installed(t, program)
			start := func(np string, args ...string) (dir string, out outcome) {
				ctx := limited(t)
				cmd := command(ctx, t.TempDir(), "jacobi-rank", args...)
				out = finish(t, ctx, through(t, cmd, append([]string{path, "-np", np}, options...)...))
				return filepath.Join(cmd.Dir, "out"), out
			}
			dir, out := start("4", scheduled...)
			answersAs(t, want, dir, out, 4)
			dir, out = start("5", few...)
			answersAs(t, wantFew, dir, out, 3)
			if !strings.Contains(out.stdout, "2 of 5 ranks stay idle: grid.ny 20 has rows for 3") {
				t.Errorf("the summary has no idle ranks:\n%s", out.stdout)
			}
			_, out = start("2", "--probe", "nats", "--json")
			measuredItself(t, out)
			dir, out = start("4", above...)
			out.stderr = "" // mpirun has words of its own
			wantAbove(t, dir, out)
		})
	}
}

// measuredItself checks that one node has measured the part nats of the probe, to itself.
func measuredItself(t *testing.T, out outcome) {
	t.Helper()
	if from, to := reached(t, out); len(from) != 1 || !slices.Equal(from, to) {
		t.Errorf("%v measured the network to %v", from, to)
	}
}

// srun starts ranks in a terminal and in the batch file of docker/, ranks that measure their machine, and launchers of
// two ranks for a study and for a request. A batch script without srun is a run of one rank, although Slurm's variables
// are set.
func TestSlurmStartsRanks(t *testing.T) {
	t.Parallel()
	needHosts(t)
	installed(t, "srun")
	want, _ := solve(t, append(scheduled, "-np", "1")...)
	slurm, err := filepath.Abs("testdata/slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := filepath.Abs("../../docker/slurm.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	const script = `srun --immediate=60 -n 4 "$@" >srun.log
srun --immediate=60 -n 2 "$@" --probe nats --json >probe.json
printf '#!/bin/sh\nexec "$@"\n' >alone
sbatch --quiet --wait -n 4 -o alone.log alone "$@" --set output.dir=alone.out &
PATH=$(dirname "$1"):$PATH sbatch --quiet --wait --nodes=1 --ntasks-per-node=4 -o batch.log ` + "'%s'" + `
wait $!
launcher=$(dirname "$1")/launcher
shift
srun --immediate=60 -n 1 "$launcher" study -np 2 --hash --table table.jsonl --vary output.picture= "$@"
echo '{"id": 1, "hash": true, "keys": {}}' | srun --immediate=60 -n 1 "$launcher" serve -np 2 "$@" >serve.jsonl`
	dir, state := t.TempDir(), t.TempDir()
	file := "grid: {nx: 200, ny: 300}\nsolver: {max_iterations: 200}\n" // scheduled
	writeText(t, file, dir, "run.yaml")
	ctx := limited(t)
	out := finish(t, ctx, through(t, command(ctx, dir, "jacobi-rank", scheduled...), "unshare", "--fork", "--pid",
		"--kill-child", "--mount-proc", "--net", "--uts",
		"sh", slurm, state, "sh", "-euc", fmt.Sprintf(script, batch), "sh"))
	if out.code != 0 {
		for _, name := range []string{"slurmctld.log", "slurmd.log"} {
			log, _ := os.ReadFile(filepath.Join(state, name))
			t.Logf("%s:\n%s", name, log)
		}
	}
	for _, c := range []struct {
		log, out string // name and pattern
		ranks    int
	}{{"srun.log", "out", 4}, {"alone.log", "alone.out", 1}, {"batch.log", "out-[0-9]", 4}} {
		log, err := os.ReadFile(filepath.Join(dir, c.log))
		if err != nil {
			t.Error(err)
		}
		dirs, err := filepath.Glob(filepath.Join(dir, c.out))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("%d directories %s, %v; exit code %d, %s\n%s", len(dirs), c.out, err, out.code, c.log, log)
		}
		answersAs(t, want, dirs[0], outcome{code: out.code, stdout: string(log), stderr: out.stderr}, c.ranks)
	}
	if lines := studyLines(t, dir); len(lines) != 1 || lines[0].SHA256 != want.sha {
		t.Errorf("study: %+v, want the field %s", lines, want.sha)
	}
	c := &client{t: t, lines: bufio.NewScanner(strings.NewReader(readText(t, dir, "serve.jsonl")))}
	if end, r := c.until("end"); end.End.Error != "" || r.FieldHash != want.sha {
		t.Errorf("serve: %+v, field %s, want %s", end.End, r.FieldHash, want.sha)
	}
	measuredItself(t, outcome{stdout: readText(t, dir, "probe.json")})
}

// byHand starts ranks as a scheduler would, each with its own variables.
func byHand(t *testing.T, dir string, env [][]string, args ...string) []outcome {
	t.Helper()
	return wrapped(t, dir, env, func(_ int, cmd *exec.Cmd) *exec.Cmd { return cmd }, args...)
}

// wrapped is byHand with the command of each rank changed by wrap.
func wrapped(t *testing.T, dir string, env [][]string, wrap func(rank int, cmd *exec.Cmd) *exec.Cmd,
	args ...string) []outcome {
	t.Helper()
	cmds := make([]*exec.Cmd, len(env))
	texts := make([][2]bytes.Buffer, len(env))
	start := time.Now()
	for i, vars := range env {
		cmds[i] = command(limited(t), dir, "jacobi-rank", args...)
		cmds[i].Env = append(cmds[i].Env, vars...)
		cmds[i] = wrap(i, cmds[i])
		cmds[i].Stdout, cmds[i].Stderr = &texts[i][0], &texts[i][1]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	outs := make([]outcome, len(env))
	for i, cmd := range cmds {
		_ = cmd.Wait() // ProcessState is checked below
		outs[i] = outcome{cmd.ProcessState.ExitCode(), texts[i][0].String(), texts[i][1].String(), time.Since(start)}
	}
	return outs
}

// together merges the outcomes of several ranks into one.
func together(outs []outcome) (all outcome) {
	for _, o := range outs {
		all.code = max(all.code, o.code)
		all.stdout += o.stdout
		all.stderr += o.stderr
	}
	return all
}

// pmi returns the variables of ranks without a local rank.
func pmi(ranks int) (env [][]string) {
	for r := range ranks {
		env = append(env, []string{fmt.Sprintf("PMI_RANK=%d", r), fmt.Sprintf("PMI_SIZE=%d", ranks)})
	}
	return env
}

// Ranks work in the environments of schedulers that the tests cannot run.
func TestVariablesOfSchedulersStartRanks(t *testing.T) {
	want, _ := solve(t, append(scheduled, "-np", "1")...)
	for _, c := range []struct {
		name string
		env  string // %d: the rank
		args []string
	}{
		{"torchrun", "RANK=%[1]d WORLD_SIZE=3 LOCAL_RANK=%[1]d LOCAL_WORLD_SIZE=3 TORCHELASTIC_RUN_ID=x", nil},
		{"Kubernetes", "JOB_COMPLETION_INDEX=%d", set("run.ranks=3")},
		{"Flux", "FLUX_TASK_RANK=%[1]d FLUX_JOB_SIZE=3 FLUX_TASK_LOCAL_ID=%[1]d FLUX_JOB_ID=f2", nil},
		{"PALS", "PALS_RANKID=%[1]d PALS_LOCAL_RANKID=%[1]d PMI_SIZE=3 PALS_APID=9", nil},
		{"Slurm", "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=%[1]d SLURM_NTASKS=3 SLURM_LOCALID=%[1]d " +
			"SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=3", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var env [][]string
			for r := range 3 {
				env = append(env, strings.Fields(fmt.Sprintf(c.env, r)))
			}
			outs := byHand(t, dir, env, append(scheduled, c.args...)...)
			answersAs(t, want, filepath.Join(dir, "out"), together(outs), 3)
		})
	}
}

// Ranks without a launcher can use the user's NATS server if they know the id of their run.
func TestScheduledRanksMeetOnAServerOfTheUser(t *testing.T) {
	want, _ := solve(t, append(scheduled, "-np", "1")...)
	url := "nats.url=" + startServer(t).String()
	dir := t.TempDir()
	env := pmi(2)
	for r := range env {
		env[r] = append(env[r], "JACOBI_RUN_ID=mine")
	}
	outs := byHand(t, dir, env, append(scheduled, set(url)...)...)
	answersAs(t, want, filepath.Join(dir, "out"), together(outs), 2)
}

// startRank0 starts rank 0 of two, and returns it and its rendezvous file once that is there.
func startRank0(t *testing.T, dir, env, name string, args ...string) (rank *exec.Cmd, file string) {
	t.Helper()
	rank = command(limited(t), dir, "jacobi-rank", args...)
	rank.Env = append(rank.Env, strings.Fields(env)...)
	if err := rank.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = rank.Process.Kill() // it may have ended
		_ = rank.Wait()         // always an error: it was killed
	})
	file = filepath.Join(dir, name)
	(&cluster{t: t}).await("rendezvous file", func() bool { _, err := os.Stat(file); return err == nil })
	return rank, file
}

// A rendezvous file of a killed run does no harm, and one of a running run is respected. Without rank 0 the others say
// that it is missing.
func TestRendezvousFiles(t *testing.T) {
	t.Parallel()
	two := pmi(2)
	dir := t.TempDir()
	// Rank 0 waits for rank 1, which is not started. Killed, it leaves its file.
	first, file := startRank0(t, dir, strings.Join(two[0], " "), "out/.jacobi-rendezvous", scheduled...)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of %s: %v, %v; want 0600", file, info, err)
	}
	byHand(t, dir, two[:1], scheduled...)[0].fails(t, 1, fmt.Sprintf("another run, whose rank 0 is process %d on ",
		first.Process.Pid))
	kill(t, first.Process.Pid)
	_ = first.Wait() // always an error: it was killed
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}

	late := byHand(t, dir, two[1:], append(scheduled, set("halo.timeout=2s")...)...)[0]
	want := regexp.MustCompile(`rank 1: find the server of rank 0 within 2s: ` +
		file + ` names rank 0 as process \d+ on .*: connection refused; all ranks have to see`)
	if late.code != 3 || !want.MatchString(late.stderr) || late.took > 10*time.Second {
		t.Errorf("exit code %d after %v, %s; want 3 and %v", late.code, late.took, late.stderr, want)
	}
	if out := together(byHand(t, dir, [][]string{two[1], two[0]}, scheduled...)); out.code != 0 {
		t.Errorf("with a file of an earlier run: exit code %d\n%s", out.code, out.stderr)
	}
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s was left", file)
	}
	elsewhere := t.TempDir()
	gone := byHand(t, dir, two[1:], append(scheduled, set("halo.timeout=1s", "nats.rendezvous="+elsewhere)...)...)[0]
	gone.fails(t, 3, "there is no file "+elsewhere+"/.jacobi-rendezvous")
}

// Ranks on three hosts find rank 0's server, with TLS, through a file system that they share.
func TestScheduledRanksMeetOverHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	want, _ := solve(t, append(scheduled, "-np", "1")...)
	dir := t.TempDir()
	outs := wrapped(t, dir, pmi(3), func(rank int, cmd *exec.Cmd) *exec.Cmd {
		return c.in(c.names[rank], cmd, "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
	}, scheduled...)
	r := answersAs(t, want, filepath.Join(dir, "out"), together(outs), 3)
	for rank, on := range r.Ranks {
		for side, link := range on.Transports {
			if on.Host != c.names[rank] || link.Transport != "nats" {
				t.Errorf("rank %d on %s, %s: %s, want host %s and nats", rank, on.Host, side, link.Transport,
					c.names[rank])
			}
		}
	}
}

// Two ranks share a node if they can prove it. Host names do not count.
func TestNodesAreProvenNotNamed(t *testing.T) {
	needHosts(t)
	for _, c := range []struct {
		name    string
		unshare func(rank int) []string
		want    string
	}{
		{"one node, two names", func(rank int) []string {
			return []string{"--uts", "sh", "-c", fmt.Sprintf(`hostname rank%d && exec "$0" "$@"`, rank)}
		}, "shared memory"},
		{"two PID namespaces, one name", func(int) []string {
			return []string{"--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
				`hostname same && exec "$0" "$@"`}
		}, "nats"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			outs := wrapped(t, dir, pmi(2), func(rank int, cmd *exec.Cmd) *exec.Cmd {
				return through(t, cmd, append([]string{"unshare"}, c.unshare(rank)...)...)
			}, scheduled...)
			if all := together(outs); all.code != 0 {
				t.Fatalf("exit code %d\n%s", all.code, all.stderr)
			}
			r := readReport(t, filepath.Join(dir, "out"))
			if same := r.Ranks[0].Host == r.Ranks[1].Host; same != (c.want == "nats") {
				t.Errorf("hosts %s and %s", r.Ranks[0].Host, r.Ranks[1].Host)
			}
			for side, link := range r.Ranks[0].Transports {
				if link.Transport != c.want {
					t.Errorf("%s: %s (%s), want %s", side, link.Transport, link.Why, c.want)
				}
			}
		})
	}
}

// Rank 0 accepts connections from other machines only if the scheduler says that the run has several.
func TestServerOfOneNodeStaysOnLoopback(t *testing.T) {
	t.Parallel()
	const ranks = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0"
	for env, scheme := range map[string]string{
		ranks + " SLURM_NNODES=1":              "nats://",
		ranks + " SLURM_STEP_TASKS_PER_NODE=2": "nats://",
		ranks + " SLURM_NNODES=2":              "tls://",
	} {
		t.Run(scheme, func(t *testing.T) {
			dir := t.TempDir()
			_, file := startRank0(t, dir, env, ".jacobi-rendezvous-slurm-7-0", append(scheduled,
				set("nats.rendezvous="+dir)...)...)
			text := readText(t, file)
			loopback := scheme == "nats://"
			if !strings.Contains(text, `"URL":"`+scheme) || loopback != strings.Contains(text, "@127.0.0.1:") {
				t.Errorf("%s: want a server at %s, on 127.0.0.1: %v", env, scheme, loopback)
			}
		})
	}
}
