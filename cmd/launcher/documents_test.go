package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
		var out bytes.Buffer
		cmd := newCommand(&out, &out)
		cmd.SetArgs(mpiArgs(args))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
