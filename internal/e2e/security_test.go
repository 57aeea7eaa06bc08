package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/net/roster/rostertest"
)

// A client with all permissions on the user's server sees every message of a run, replays and damages messages, sends
// stop and abort, and floods the server. The answer of the run does not change, and the client cannot read any rows.
func TestUninvitedClientChangesNothing(t *testing.T) {
	u := startServer(t)
	args := onRanks(3, "grid.nx=64", "grid.ny=80", "solver.max_iterations=200", "halo.transport=nats", "halo.depth=2")
	want, _ := solve(t, args...)

	closed := make(chan struct{})
	stranger, err := nats.Connect(u.String(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	own := nats.Header{"Stranger": {"yes"}}
	flood := make([]byte, 4<<10)
	var heard, readable int
	_, err = stranger.Subscribe("jacobi.>", func(m *nats.Msg) {
		if m.Header.Get("Stranger") != "" {
			return
		}
		heard++
		if bytes.Contains(m.Data, []byte("JHLO")) || bytes.Contains(m.Data, []byte("{")) &&
			bytes.Contains(m.Data, []byte("rank")) {
			readable++
		}
		if heard == 100 { // in the middle of the run, more messages than a link or a rank can queue
			for range 20000 {
				if err := stranger.PublishMsg(&nats.Msg{Subject: m.Subject, Header: own, Data: flood}); err != nil {
					t.Error(err)
				}
			}
		}
		run := strings.Join(strings.Split(m.Subject, ".")[:2], ".")
		damaged := bytes.Clone(m.Data)
		damaged[len(damaged)/2] ^= 1
		for _, attack := range []nats.Msg{
			{Subject: m.Subject, Data: m.Data},
			{Subject: m.Subject, Data: damaged},
			{Subject: run + ".abort", Data: m.Data},
			{Subject: run + ".abort", Data: []byte(`{"rank":1,"cause":"because I say so"}`)},
			{Subject: run + ".stop", Data: nil},
			{Subject: run + ".event.0", Data: []byte(`{"kind":"aborted","rank":0,"text":"because I say so"}`)},
			{Subject: m.Subject, Reply: run + ".abort", Data: m.Data},
		} {
			attack.Header = own
			if err := stranger.PublishMsg(&attack); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	got, _ := solve(t, append(args, "--set", "nats.url="+u.String())...)
	if got != want {
		t.Errorf("answer %+v\nwant %+v", got, want)
	}
	if err := stranger.Drain(); err != nil {
		t.Fatal(err)
	}
	<-closed // after the last message
	if heard < 400 || readable > 0 {
		t.Errorf("the stranger heard %d messages and could read %d, want at least 400 and none", heard, readable)
	}
}

// No command line, log, report or dry run has a secret of the run.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"own server", "server of the user"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"-np", "2", "-v"}
			secrets := map[string]bool{}
			if name != "own server" {
				u := startServer(t)
				password, _ := u.User.Password()
				secrets[password] = true
				writeText(t, password+"\n", dir, "password")
				if err := os.Chmod(filepath.Join(dir, "password"), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, set("nats.url=nats://"+u.Host, "nats.user="+u.User.Username(),
					"nats.password_file=password")...)
			}
			dry := mustRun(t, dir, "launcher", append(args, "--dry-run")...)
			l := begin(t, dir, args...)
			var lines string
			for _, pid := range append(l.ranks(), l.cmd.Process.Pid) {
				maps.Copy(secrets, environSecrets(t, pid))
				lines += readText(t, fmt.Sprintf("/proc/%d/cmdline", pid))
			}
			l.signal(os.Interrupt)
			output := l.ends(130)
			report := readText(t, dir, "out", "report.json")
			if len(secrets) == 0 {
				t.Fatal("the run has no secrets")
			}
			for secret := range secrets {
				for where, text := range map[string]string{"a command line": lines, "the output": output,
					"the report": report, "the dry run": dry.stdout + dry.stderr} {
					if strings.Contains(text, secret) {
						t.Errorf("%s shows %q:\n%s", where, secret, text)
					}
				}
			}
		})
	}
}

// environSecrets returns the secrets that the launcher has passed to a process in its environment.
func environSecrets(t *testing.T, pid int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	s, err := configs.FromLauncher(strings.Split(readText(t, fmt.Sprintf("/proc/%d/environ", pid)), "\x00"))
	if err != nil { // it is no rank
		return found
	}
	if u, err := url.Parse(s.NATS.URL); err == nil && u.User != nil {
		password, _ := u.User.Password()
		found[password] = true
	}
	if secret, inline := strings.CutPrefix(s.NATS.SecretFile, "inline:"); inline {
		found[secret] = true
	}
	return found
}

// A run whose server restarts with another password ends with the refused login as the reason, not with a silent rank.
func TestServerComesBackDifferent(t *testing.T) {
	t.Parallel()
	srv := rostertest.StartWith(t, server.Options{Username: "jacobi", Password: "right"})
	own, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	own.User = url.UserPassword("jacobi", "right")
	l := begin(t, t.TempDir(), onRanks(2, append(overNATS(own.String()), "run.liveness=2s")...)...)
	srv.Stop()
	srv.RunChanged(func(o *server.Options) { o.Password = "changed" })
	l.ends(1, `launcher: rank \d on \S+ failed: .*nothing was heard from the NATS server for 2s, since `+
		`\d\d:\d\d:\d\d: the connection to the NATS server at nats://`+regexp.QuoteMeta(own.Host)+
		` could not be made again: .*: the server does not know this user, or wants another password or key`)
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
			out := run(t, t.TempDir(), "launcher", onRanks(2, append(overNATS(u.String()), "grid.nx=64", "grid.ny=64",
				"solver.max_iterations=10")...)...)
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
	out := mustRun(t, dir, "launcher", onRanks(2, append(overNATS(s.URL()), "grid.nx=64", "grid.ny=64",
		"solver.max_iterations=10")...)...)
	r := readReport(t, filepath.Join(dir, "out"))
	if len(r.Ranks) != 2 || strings.Count(out.stdout, r.FieldHash) != 1 {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// escape changes the title and the colours of a terminal.
const escape = "\x1b]0;owned\a\x1b[31m"

// Text from files, servers, agents, other machines and names reaches a terminal without control sequences.
func TestEscapeSequencesAreShownAsText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	header := "{'descr': '" + escape + "', 'fortran_order': False, 'shape': (3, 3), }"
	writeText(t, "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header, dir, "evil.npy")
	writeText(t, `"\e]0;owned\a\e[31m": 1`, dir, "unknown.yaml")
	writeText(t, "{}", dir, "checkpoints", escape, "manifest.json")
	writeText(t, "printf '\\033]0;owned\\a\\033[31m\\n' >&2\nexit 255\n", dir, "ssh.sh")
	agents := startServer(t).String()
	falseAgent(t, agents)

	for name, c := range map[string]struct {
		program string
		args    []string
	}{
		"initial field":       {"launcher", set("problem.initial=evil.npy")},
		"initial of a rank":   {"jacobi-rank", set("problem.initial=evil.npy")},
		"unknown key":         {"launcher", []string{"--config", "unknown.yaml"}},
		"run.name":            {"launcher", set("run.name=" + escape)},
		"output.dir":          {"launcher", set("output.dir=" + escape)},
		"output.field":        {"launcher", set("output.field=" + escape + ".npy")},
		"checkpoint":          {"launcher", []string{"--resume", "checkpoints"}},
		"error of the server": {"launcher", set("nats.url=" + falseServer(t))},
		"remote stderr":       {"launcher", []string{"--ssh", "sh ./ssh.sh", "--host", "elsewhere", "-np", "1"}},
		"list of agents":      {"launcher", append([]string{"nodes"}, set("nats.url="+agents)...)},
		"search for agents":   {"launcher", append(set("nats.url="+agents), "-np=4", "--nodes", "--wait=1s")},
		"argument":            {"launcher", []string{escape}},
	} {
		out := run(t, dir, c.program, c.args...)
		shown := out.stdout + out.stderr
		if strings.ContainsAny(shown, "\x1b\a") || !strings.Contains(shown, `\x1b]0;owned\a\x1b[31m`) {
			t.Errorf("%s: %q, want the escape sequences as text", name, shown)
		}
	}
}

// falseServer starts a server that greets like a NATS server and refuses every client with a message of its own. It
// returns the address.
func falseServer(t *testing.T) string {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.0","proto":1,"max_payload":1048576}`+"\r\n")
				if _, err := c.Read(make([]byte, 4096)); err == nil {
					fmt.Fprint(c, "-ERR '"+escape+"'\r\n")
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

// falseAgent offers slots at a server under a host name with control characters.
func falseAgent(t *testing.T, url string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	offer, err := json.Marshal(map[string]any{
		"id": strings.Repeat("ab", 32), "host": escape, "pid": 1, "version": escape, "what": escape,
		"slots": 2, "free": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Subscribe("jacobi.nodes.offer", func(m *nats.Msg) {
		if err := m.Respond(offer); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}
