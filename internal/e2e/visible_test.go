package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// escape changes the title and the colours of a terminal.
const escape = "\x1b]0;owned\a\x1b[31m"

// Text from files, servers, agents, other machines and names reaches a terminal without control sequences.
func TestEscapeSequencesAreShownAsText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	header := "{'descr': '" + escape + "', 'fortran_order': False, 'shape': (3, 3), }"
	write("evil.npy", "\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header, 0o644)
	write("unknown.yaml", `"\e]0;owned\a\e[31m": 1`, 0o644)
	write(filepath.Join("checkpoints", escape, "manifest.json"), "{}", 0o644)
	write("ssh", "#!/bin/sh\nprintf '\\033]0;owned\\a\\033[31m\\n' >&2\nexit 255\n", 0o755)
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
		"remote stderr":       {"launcher", []string{"--ssh", "./ssh", "--host", "elsewhere", "-np", "1"}},
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
