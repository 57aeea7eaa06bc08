package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/net/roster/rostertest"
)

// Ranks that do not see the launcher's directory send their rows over NATS. The files have the same bytes whether all
// ranks do so or only some. Their nodes keep no files.
func TestFilesOverNATS(t *testing.T) {
	t.Parallel()
	// 2.9 MB: several messages per rank
	args := set("grid.nx=300", "grid.ny=1200", "grid.dtype=float64", "solver.max_iterations=20")
	want := t.TempDir()
	if out := run(t, want, "launcher", append(args, "-np", "1")...); out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		near int // agents that start in the launcher's directory
		max  int // max_payload of the server; 0 for the default
	}{{"all far", 0, 0}, {"one near", 1, 0}, {"all far, small messages", 0, 64 << 10}} {
		t.Run(c.name, func(t *testing.T) {
			u := startServer(t)
			if c.max > 0 {
				s := rostertest.StartWith(t, server.Options{MaxPayload: int32(c.max)})
				var err error
				if u, err = url.Parse(s.URL()); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			var far []string
			for i := range 2 {
				at := dir
				if i >= c.near {
					at = t.TempDir()
					far = append(far, at)
				}
				startAgent(t, at, u, "--slots", "2")
			}
			out := run(t, dir, "launcher", onNodes(u, append(args, "-np", "4")...)...)
			if out.code != 0 {
				t.Fatalf("exit code %d\n%s", out.code, out.stderr)
			}
			for _, name := range []string{"field.npy", "history.csv", "field.png"} {
				got, err := os.ReadFile(filepath.Join(dir, "out", name))
				if err != nil {
					t.Fatal(err)
				}
				if one, err := os.ReadFile(filepath.Join(want, "out", name)); err != nil || !bytes.Equal(got, one) {
					t.Errorf("%s: %d bytes, and %d from one rank here: not the same (%v)", name, len(got), len(one),
						err)
				}
			}
			ways := map[string]int{}
			for _, r := range readReport(t, filepath.Join(dir, "out")).Ranks {
				ways[r.Output]++
			}
			if wantWays := map[string]int{"nats to " + host: 4 - 2*c.near,
				"file": 2 * c.near}; ways["file"] != wantWays["file"] ||
				ways["nats to "+host] != wantWays["nats to "+host] {
				t.Errorf("ways of the rows %v, want %v", ways, wantWays)
			}
			if text := fmt.Sprintf("Rows sent      %d x nats to %s", 4-2*c.near, host); !strings.Contains(out.stdout,
				text) {
				t.Errorf("no %q in\n%s", text, out.stdout)
			}
			entries, err := os.ReadDir(filepath.Join(dir, "out"))
			if err != nil || len(entries) != 4 {
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
