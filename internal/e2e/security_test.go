package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// A client with all permissions on the user's server sees every message of a run, replays and damages messages, sends
// stop and abort, and floods the server. The answer of the run does not change, and the client cannot read any rows.
func TestUninvitedClientChangesNothing(t *testing.T) {
	u := startServer(t)
	args := append(set("grid.nx=64", "grid.ny=80", "solver.max_iterations=200", "halo.transport=nats", "halo.depth=2"),
		"-np", "3")
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
				file := filepath.Join(dir, "password")
				if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, set("nats.url=nats://"+u.Host, "nats.user="+u.User.Username(),
					"nats.password_file="+file)...)
			}
			dry := run(t, dir, "launcher", append(args, "--dry-run")...)
			l := begin(t, dir, args...)
			var lines []byte
			for _, pid := range append(l.ranks(), l.cmd.Process.Pid) {
				for k := range environSecrets(t, pid) {
					secrets[k] = true
				}
				line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, line...)
			}
			if err := l.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			code, output := l.end()
			report, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
			if err != nil || code != 130 || dry.code != 0 {
				t.Errorf("exit codes %d and %d, report: %v\n%s", code, dry.code, err, output)
			}
			if len(secrets) == 0 {
				t.Fatal("the run has no secrets")
			}
			for secret := range secrets {
				for where, text := range map[string]string{"a command line": string(lines), "the output": output,
					"the report": string(report), "the dry run": dry.stdout + dry.stderr} {
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
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, line := range strings.Split(string(environ), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		switch name {
		case "JACOBI_NATS_URL":
			if u, err := url.Parse(value); err == nil && u.User != nil {
				password, _ := u.User.Password()
				found[password] = true
			}
		case "JACOBI_NATS_SECRET_FILE":
			if secret, inline := strings.CutPrefix(value, "inline:"); inline {
				found[secret] = true
			}
		}
	}
	return found
}
