package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"jacobi/configs"
)

// Help tells about each key, about a section, and about commands.
func TestHelpOfKeys(t *testing.T) {
	for _, name := range configs.Names() {
		if out, err := command(t, "help", name); err != nil || !strings.HasPrefix(out, name+": ") ||
			!strings.Contains(out, "\nDefault: ") {
			t.Errorf("%s: error %v, output\n%s", name, err, out)
		}
	}
	const want = `halo.timeout: a duration
Default: 30s

the deadline of waits for a neighbour

In the environment: JACOBI_HALO_TIMEOUT
`
	if out, err := command(t, "help", "halo.timeout"); err != nil || out != want {
		t.Errorf("error %v, output\n%s", err, out)
	}
	for _, c := range []struct{ args, want string }{
		{"help grid.nx", "\nDefault: 16384, with a problem of your own 513\n"},
		{"help solver.method", "\nDefault: jacobi, with a problem of your own multigrid\n"},
		{"help problem.preset", "\nDefault: gtc2019, with a problem of your own empty\n"},
		{"help problem.top", "\nDefault: empty\n"}, {"help run.ranks", "\nDefault: 1\n"},
		{"help log", "  log.level: what ranks log to stderr\n  log.format: json: each line on stderr is JSON\n"},
		{"help nodes", "nodes"}, {"help expressions", "Functions:"},
	} {
		if out, err := command(t, strings.Fields(c.args)...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: error %v, output\n%s", c.args, err, out)
		}
	}
	for args, want := range map[string]string{
		"solver.methd": `help "solver.methd": did you mean solver.method?`,
		"zzzzzzzz":     `help "zzzzzzzz": no command, key or section of the run file has this name`,
	} {
		if _, err := command(t, "help", args); err == nil || err.Error() != want {
			t.Errorf("help %s: error %v, want %s", args, err, want)
		}
	}
}

// All help fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	topics := [][]string{{"--help"}, {"help", "expressions"}, {"help", "help"}}
	for _, c := range newCommand(nil, nil).Commands() {
		topics = append(topics, []string{c.Name(), "--help"})
	}
	for _, name := range configs.Names() {
		topics = append(topics, []string{"help", name})
	}
	for _, args := range topics {
		out, err := command(t, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		for line := range strings.Lines(out + brief) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpColumns {
				t.Errorf("%q: %d columns: %s", args, n, line)
			}
		}
	}
}

// Shells complete keys, and the words that a key takes.
func TestCompletionOfSettings(t *testing.T) {
	for _, c := range []struct{ begun, want string }{
		{"solver.m", "solver.method= solver.max_iterations=:6"},
		{"solver.method=", "solver.method=auto solver.method=jacobi solver.method=multigrid:4"},
		{"grid.dtype=", "grid.dtype=float32 grid.dtype=float64:4"},
		{"halo.direct.encrypt=a", "halo.direct.encrypt=auto halo.direct.encrypt=always:4"},
		{"problem.source=", ":0"},
	} {
		found, how := completeSetting(nil, nil, c.begun)
		if got := fmt.Sprintf("%s:%d", strings.Join(found, " "), how); got != c.want {
			t.Errorf("%s: %q, want %q", c.begun, got, c.want)
		}
	}
}
