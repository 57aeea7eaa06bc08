package e2e

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/net/roster/rostertest"
)

// A run whose server restarts with another password ends with the refused login as the reason, not with a silent rank.
func TestServerComesBackDifferent(t *testing.T) {
	t.Parallel()
	srv := rostertest.StartWith(t, server.Options{Username: "jacobi", Password: "right"})
	own, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	own.User = url.UserPassword("jacobi", "right")
	l := begin(t, t.TempDir(), append(set(overNATS(own.String())...), "-np", "2", "--set", "run.liveness=2s")...)
	srv.Stop()
	srv.RunChanged(func(o *server.Options) { o.Password = "changed" })
	code, output := l.end()
	want := regexp.MustCompile(`launcher: rank \d on \S+ failed: .*nothing was heard from the NATS server for 2s, ` +
		`since \d\d:\d\d:\d\d: the connection to the NATS server at nats://` + regexp.QuoteMeta(own.Host) +
		` could not be made again: nats: Authorization Violation: ` +
		`the server does not know this user, or wants another password or key`)
	if code != 1 || !want.MatchString(output) {
		t.Errorf("exit code %d, output\n%s\nwant 1 and %s", code, output, want)
	}
	l.leavesNothing()
}

// A missing permission or a low limit of the server ends a run at its start, and the error names it.
func TestServerThatAllowsTooLittle(t *testing.T) {
	half := &server.SubjectPermission{Allow: []string{"jacobi.*.event.>", "jacobi.*.files", "jacobi.*.inbox.>"}}
	other := &server.SubjectPermission{Allow: []string{"other.>"}}
	user := func(p *server.SubjectPermission) server.Options {
		return server.Options{Users: []*server.User{{Username: "u", Password: "p",
			Permissions: &server.Permissions{Publish: p, Subscribe: p}}}}
	}
	const needs = `: the user needs permission to publish and subscribe on jacobi\.>`
	for name, c := range map[string]struct {
		server server.Options
		want   string
	}{
		"no permission": {user(other), `(?m)^launcher: the NATS server at nats://\S+: nats: permissions violation: ` +
			`Permissions Violation for Subscription to "jacobi\.\S+"` + needs + `$`},
		"half a permission": {user(half), `launcher: rank \d on \S+ failed: .*nats: permissions violation: ` +
			`Permissions Violation for \S+ to "jacobi\.\S+"` + needs},
		"small messages": {server.Options{MaxPayload: 300},
			`launcher: rank \d on \S+ failed: .*takes \d+ bytes, ` +
				`and max_payload in the configuration of the NATS server is \d+`},
		"few subscriptions": {server.Options{MaxSubs: 4}, `launcher: rank \d on \S+ failed: .*nats: ` +
			`server maximum subscriptions exceeded: raise max_subscriptions in the configuration of the server`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(rostertest.StartWith(t, c.server).URL())
			if err != nil {
				t.Fatal(err)
			}
			if c.server.Users != nil {
				u.User = url.UserPassword("u", "p")
			}
			out := run(t, t.TempDir(), "launcher", append(set(append(overNATS(u.String()), "grid.nx=64", "grid.ny=64",
				"solver.max_iterations=10")...), "-np", "2")...)
			if out.code != 1 || !regexp.MustCompile(c.want).MatchString(out.stderr) {
				t.Errorf("exit code %d\n%s\nwant 1 and %s", out.code, out.stderr, c.want)
			}
			if out.took.Seconds() > 20 {
				t.Errorf("it took %v", out.took)
			}
		})
	}
}

// The report of a run is read from its file where it is too large for a message of the user's server.
func TestReportLargerThanAMessage(t *testing.T) {
	t.Parallel()
	s := rostertest.StartWith(t, server.Options{MaxPayload: 1000})
	dir := t.TempDir()
	out := run(t, dir, "launcher", append(set(append(overNATS(s.URL()), "grid.nx=64", "grid.ny=64",
		"solver.max_iterations=10")...), "-np", "2")...)
	r := readReport(t, filepath.Join(dir, "out"))
	if out.code != 0 || len(r.Ranks) != 2 || strings.Count(out.stdout, r.FieldSHA256) != 1 {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}
