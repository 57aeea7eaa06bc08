package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jacobi/internal/tools/probe"
	"jacobi/internal/tools/soak"
)

// reached returns the nodes that measured the part nats, and those that answered them, in their order.
func reached(t *testing.T, out outcome) (from, to []string) {
	t.Helper()
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	for _, r := range parseProbe(t, out).NATS {
		var links []probe.Table
		if r.Data == nil && r.Fault == "" {
			continue
		}
		if err := json.Unmarshal(r.Data, &links); err != nil {
			t.Errorf("%s: %s %v", r.Host, r.Fault, err)
		}
		from = append(from, r.Host)
		for _, row := range links[0].Rows {
			to = append(to, fmt.Sprint(row[0]))
		}
	}
	return from, to
}

// On several hosts one rank of each measures its own, and the first one the network to all. A soak over hosts compares
// the fields of all ranks.
func TestProbeAndSoakOverHosts(t *testing.T) {
	c := newCluster(t, 2)
	place := append(c.ssh("user"), "--host", "a:2,b:1", "-np", "3")
	out := c.run(t.TempDir(), append([]string{"probe", "nats", "--json", "-q"}, place...)...)
	from, to := reached(t, out)
	if !slices.Equal(from, []string{"a"}) || !slices.Equal(to, []string{"a", "b"}) {
		t.Errorf("%v measured the network to %v, want a to a and b", from, to)
	}
	c.leavesNothing(5 * time.Second)

	mesh := set("grid.nx=130", "grid.ny=97", "solver.max_iterations=60")
	out = c.run(t.TempDir(), slices.Concat([]string{"soak", "--json", "--for", "1ms"}, place, mesh)...)
	lines := slices.Collect(strings.Lines(out.stdout))
	if out.code != 0 || len(lines) < 3 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	var step, last soak.Event
	if err := json.Unmarshal([]byte(lines[1]), &step); err != nil || step.Step == nil {
		t.Fatalf("%v in %q", err, lines[1])
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.End == nil {
		t.Fatalf("%v in %q", err, lines[len(lines)-1])
	}
	var hosts []string
	for _, r := range step.Step.Ranks {
		hosts = append(hosts, r.Host)
	}
	if !slices.Equal(hosts, []string{"a", "a", "b"}) || last.End.Differing != 0 {
		t.Errorf("ranks on %v, %d differ; want a, a, b and 0", hosts, last.End.Differing)
	}
	c.leavesNothing(5 * time.Second)
}

// A probe and a soak run on the slots of agents.
func TestProbeAndSoakOfAgents(t *testing.T) {
	u := startServer(t)
	startAgent(t, t.TempDir(), u, "--slots", "2")
	from, to := reached(t, run(t, t.TempDir(), "launcher", append([]string{"probe", "nats", "--json", "-q"},
		onNodes(u, "-np", "2")...)...))
	if len(from) != 1 || !slices.Equal(from, to) {
		t.Errorf("%v measured the network to %v", from, to)
	}
	out := run(t, t.TempDir(), "launcher", slices.Concat([]string{"soak", "--for", "1ms"}, onNodes(u, "-np", "2"),
		set("grid.nx=64", "grid.ny=96", "solver.max_iterations=4"))...)
	if want := " bits compared, none differs\n"; out.code != 0 || !strings.HasSuffix(out.stdout, want) {
		t.Errorf("exit code %d, want the end %q\n%s%s", out.code, want, out.stdout, out.stderr)
	}
}

// Ranks that a scheduler starts measure without a launcher.
func TestProbeUnderMPIRun(t *testing.T) {
	for program, args := range map[string][]string{
		"mpirun.openmpi": {"--allow-run-as-root", "--oversubscribe"},
		"mpiexec.hydra":  nil,
	} {
		t.Run(program, func(t *testing.T) {
			path := installed(t, program)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := through(t, command(ctx, t.TempDir(), "jacobi-rank", "--probe", "nats", "--json"),
				append([]string{path, "-np", "2"}, args...)...)
			if from, to := reached(t, finish(t, ctx, cmd)); len(from) != 1 || !slices.Equal(from, to) {
				t.Errorf("%v measured the network to %v", from, to)
			}
		})
	}
}
