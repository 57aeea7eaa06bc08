package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		{"solver.m", "solver.method= solver.max_iterations= solver.mesh_error=:6"},
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

// commandLine matches a command of the launcher, or of a rank, in a code block of a document; started matches a line
// with such a command anywhere.
var (
	commandLine = regexp.MustCompile(`^ {4,}(?:\$ )?(?:[A-Z_]+=\S+ )*` +
		`(?:srun -n 8 |mpirun -np 8 |echo '[^']*' \| )?bin/(launcher|jacobi-rank) (.*)`)
	started = regexp.MustCompile(`^ {4,}.*bin/(launcher|jacobi-rank) `)
)

// words matches a word of a shell's command line.
var words = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// documented returns the command lines of README.md and docs/*.md, split into words, by where they stand.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
			m := commandLine.FindStringSubmatch(line)
			if m == nil {
				// The tests of completion and of traces have commands like these two.
				if started.MatchString(line) && !strings.Contains(line, "<(") && !strings.Contains(line, "$keys") {
					t.Errorf("%s: not a command that this test reads: %s", filepath.Base(page), line)
				}
				continue
			}
			args, _, _ := strings.Cut(m[2]+" ", " # ")
			args, _, _ = strings.Cut(regexp.MustCompile(` +[#|>&].*`).ReplaceAllString(args, ""), " ...")
			line := filepath.Base(page) + ": bin/" + m[1] + " " + strings.TrimSpace(args)
			for _, w := range words.FindAllString(args, -1) {
				all[line] = append(all[line], strings.NewReplacer("'", "", `"`, "").Replace(w))
			}
		}
	}
	return all
}

// Every command of the documents is one that the launcher takes: runs as a dry run, commands that need other machines,
// devices or files up to their flags.
func TestCommandsOfDocuments(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := documented(t)
	if len(lines) < 50 {
		t.Errorf("%d commands in the documents, want at least 50", len(lines))
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join(root, "configs"), "configs"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("run.yaml", []byte("problem: {top: 1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("hosts", []byte("node1 slots=4\nnode2 slots=4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, args := range lines {
		has := func(flag string) bool { return slices.Contains(args, flag) }
		switch {
		case args[0] == "help":
		case !strings.HasPrefix(args[0], "-"), has("--nodes"), has("--restart"), has("--probe"), has("--resume"):
			args = append(args, "--help")
		case has("--dry-run"):
		default:
			args = append(args, "--dry-run")
		}
		if has("--probe") { // a flag of ranks
			continue
		}
		if has("--dry-run") { // no more memory than any machine has
			args = append(args, "--set", "grid.nx=64", "--set", "grid.ny=128")
		}
		cmd := newCommand(io.Discard, io.Discard) // with --json, several goroutines write
		cmd.SetArgs(mpiArgs(args))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
