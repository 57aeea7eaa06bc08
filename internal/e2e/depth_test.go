package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// With halo.depth auto the ranks measure links that GPUs cannot reach by peer memory: the halos become deeper, the
// summary says why, and the field is the same. No link is measured where there is no such link, or where halo.depth is
// a number.
func TestDepthFollowsFromTheNetwork(t *testing.T) {
	env := fakeCUDA(t)
	field := ""
	for _, c := range []struct {
		args []string
		want string // a regular expression
	}{
		{set("halo.depth=16", "halo.transport=nats"), `on 1 node, halo depth 16\n`},
		{nil, `on 1 node, halo depth 16\n`},
		{set("halo.transport=nats"), `on 1 node, halo depth 32 \(auto: \S+s from rank [0-2] to [0-2] over NATS, \S+s ` +
			`with 256 KiB\)\n`},
	} {
		dir := t.TempDir()
		args := append(set("grid.nx=64", "grid.ny=128", "device.backend=cuda", "solver.max_iterations=100",
			"output.picture="), "-np", "3")
		out := runWith(t, env, dir, "launcher", append(args, c.args...)...)
		if said := out.stdout + out.stderr; out.code != 0 || !regexp.MustCompile(c.want).MatchString(said) {
			t.Errorf("%s: exit code %d\n%s\nwant %s", strings.Join(c.args, " "), out.code, said, c.want)
		}
		data, err := os.ReadFile(filepath.Join(dir, "out", "field.npy"))
		if err != nil {
			t.Fatal(err)
		}
		if field == "" {
			field = string(data)
		}
		if string(data) != field {
			t.Errorf("%s: another field", strings.Join(c.args, " "))
		}
	}
}

// Ranks on CPUs whose rows go through a server measure it and how fast they sweep. Their halos are as deep as they
// prefer or twice, four times and so on as deep; summary and report say why, and the answer stays. Ranks that share
// memory measure nothing.
func TestDepthOfCPUsFollowsFromTheNetwork(t *testing.T) {
	args := append(set("grid.nx=64", "grid.ny=600", "solver.max_iterations=100"), "-np", "3")
	want, r := solve(t, args...)
	if r.Depth != 12 || r.DepthReason != "" {
		t.Errorf("halo depth %d (%s), want 12 of ranks that share memory", r.Depth, r.DepthReason)
	}
	got, r := solve(t, append(args, "--set", "halo.transport=nats")...)
	why := regexp.MustCompile(`^auto: \S+s from rank [0-2] to [0-2] over NATS, \S+s with 256 KiB; ` +
		`a rank sweeps \d+\.\d GLUP/s$`)
	if got != want || !slices.Contains([]int{12, 24, 48, 96, 192}, r.Depth) || !why.MatchString(r.DepthReason) {
		t.Errorf("halo depth %d (%s), field %s, want %s", r.Depth, r.DepthReason, got.sha, want.sha)
	}
}
