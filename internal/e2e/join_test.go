package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/net/natsserver"
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

// A run over the user's NATS server has the same answer as a run over the launcher's own.
func TestServerOfTheUser(t *testing.T) {
	u := startServer(t)
	args := append(set("grid.nx=64", "grid.ny=80", "solver.max_iterations=30", "halo.transport=nats"), "-np", "3")
	own, _ := solve(t, args...)
	theirs, _ := solve(t, append(args, "--set", "nats.url="+u.String())...)
	if own != theirs {
		t.Errorf("field %s, want %s", theirs.sha, own.sha)
	}
}

func TestWrongPasswordIsRefusedAndNotShown(t *testing.T) {
	u := startServer(t)
	u.User = url.UserPassword(u.User.Username(), "hunter2")
	out := run(t, t.TempDir(), "launcher", append(set("grid.nx=64", "grid.ny=80", "nats.url="+u.String()), "-np",
		"2")...)
	if out.code != 1 || !strings.Contains(out.stderr, "nats.url: ") ||
		!regexp.MustCompile(`(?i)credentials|authorization`).MatchString(out.stderr) {
		t.Errorf("exit code %d\n%s", out.code, out.stderr)
	}
	if strings.Contains(out.stdout+out.stderr, "hunter2") {
		t.Errorf("the password is shown:\n%s", out.stderr)
	}
}

// startRanks starts ranks without a launcher, as a scheduler would, and returns their exit codes and outputs.
func startRanks(t *testing.T, u *url.URL, size int, ranks []int, args func(i int) []string) (codes []int,
	outputs []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	cmds := make([]*exec.Cmd, len(ranks))
	texts := make([]bytes.Buffer, len(ranks))
	for i, rank := range ranks {
		cmds[i] = command(ctx, dir, "jacobi-rank", args(i)...)
		cmds[i].Env = append(cmds[i].Env, fmt.Sprintf("JACOBI_RANK=%d", rank), fmt.Sprintf("JACOBI_SIZE=%d", size),
			fmt.Sprintf("JACOBI_LOCAL_RANK=%d", rank),
			fmt.Sprintf("JACOBI_LOCAL_SIZE=%d", size), "JACOBI_RUN_ID="+strings.ReplaceAll(t.Name(), "/", "-"),
			"JACOBI_NATS_URL="+u.String())
		cmds[i].Stdout, cmds[i].Stderr = &texts[i], &texts[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		_ = cmd.Wait() // ProcessState is checked below
		codes = append(codes, cmd.ProcessState.ExitCode())
		outputs = append(outputs, texts[i].String())
	}
	return codes, outputs
}

// A missing rank, a duplicate rank, a rank of another run and a different configuration each end all ranks with a clear
// error in bounded time.
func TestRanksThatDoNotFit(t *testing.T) {
	base := set("grid.nx=64", "grid.ny=80", "solver.max_iterations=30", "halo.timeout=3s")
	for _, c := range []struct {
		name  string
		size  int
		ranks []int
		args  func(i int) []string
		want  string
	}{
		{"missing", 3, []int{0, 2}, nil, `rank 1 of 3 did not join within 3s`},
		{"no rank 0", 3, []int{1, 2}, nil, `rank 0`},
		{"doubled", 3, []int{0, 1, 1}, nil, `rank 1`},
		{"other configuration", 2, []int{0, 1}, func(
			i int) []string {
			return set(fmt.Sprintf("solver.max_iterations=%d", 30+i))
		}, `configuration`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := startServer(t)
			start := time.Now()
			codes, outputs := startRanks(t, u, c.size, c.ranks, func(i int) []string {
				args := append(base, "--set", fmt.Sprintf("run.ranks=%d", c.size))
				if c.args != nil {
					args = append(args, c.args(i)...)
				}
				return args
			})
			for i, code := range codes {
				if code == 0 || !regexp.MustCompile(c.want).MatchString(outputs[i]) {
					t.Errorf("rank %d: exit code %d, want a failure that matches %q:\n%s", c.ranks[i], code, c.want,
						outputs[i])
				}
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("took %v with halo.timeout 3s", took)
			}
		})
	}
}
