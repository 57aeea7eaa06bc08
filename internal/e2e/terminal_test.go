package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// terminal is a pseudoterminal and the output that it has received.
type terminal struct {
	t       *testing.T
	master  *os.File
	slave   *os.File
	mu      sync.Mutex
	came    bytes.Buffer
	changed chan struct{} // holds a token after new output
	done    chan struct{} // closed when all programs have closed the terminal
}

func openTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, slave: slave, changed: make(chan struct{}, 1), done: make(chan struct{})}
	t.Cleanup(func() { master.Close() })
	return term
}

// start starts a command on the terminal.
func (term *terminal) start(cmd *exec.Cmd) {
	term.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.slave, term.slave, term.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		term.t.Fatal(err)
	}
	term.slave.Close()
	go func() {
		defer close(term.done)
		buf := make([]byte, 4096)
		for {
			n, err := term.master.Read(buf) // fails when no process has the other side open
			term.mu.Lock()
			term.came.Write(buf[:n])
			term.mu.Unlock()
			select {
			case term.changed <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.came.String()
}

// waitFor waits until the output matches.
func (term *terminal) waitFor(pattern string) {
	term.t.Helper()
	for re := regexp.MustCompile(pattern); !re.MatchString(term.text()); {
		select {
		case <-term.changed:
		case <-term.done:
			if !re.MatchString(term.text()) {
				term.t.Fatalf("no match of %s in\n%q", pattern, term.text())
			}
		}
	}
}

// onTerminal runs the launcher on a terminal, calls meanwhile, and waits for the launcher's end.
func onTerminal(t *testing.T, columns uint16, env, args []string, meanwhile func(*terminal)) (code int, text string) {
	t.Helper()
	cmd := command(limited(t), t.TempDir(), "launcher", args...)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") }),
		"TERM=xterm")
	cmd.Env = append(cmd.Env, env...)
	term := openTerminal(t, columns)
	term.start(cmd)
	if meanwhile != nil {
		meanwhile(term)
	}
	_ = cmd.Wait() // an error for the exit code, which is returned
	<-term.done
	return cmd.ProcessState.ExitCode(), term.text()
}

// escapes matches all escape sequences; colours matches those for colours and weights.
var (
	escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

// fits checks that there are matching lines and that they fit the width of a terminal.
func fits(t *testing.T, text, pattern string, columns int) {
	t.Helper()
	re, found := regexp.MustCompile(pattern), 0
	for _, line := range regexp.MustCompile(`[\r\n]+`).Split(escapes.ReplaceAllString(text, ""), -1) {
		if !re.MatchString(line) {
			continue
		}
		found++
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns of %d: %q", n, columns, line)
		}
	}
	if found == 0 {
		t.Errorf("no line matches %s in\n%q", pattern, text)
	}
}

// Bar, summary and table fit the terminal, and have colours unless NO_COLOR is set.
func TestTerminal(t *testing.T) {
	t.Parallel()
	args := append(onRanks(2, "grid.nx=1024", "grid.ny=1024", "solver.max_iterations=100000000", "checkpoint.every=10m",
		"checkpoint.dir=cps"), "--long")
	for _, columns := range []int{80, 40} {
		code, text := onTerminal(t, uint16(columns), nil, args, func(term *terminal) {
			term.waitFor(`\] \d+(/| of (about|at most) )\d{5,}`)
			if _, err := io.WriteString(term.master, "\x03"); err != nil { // Ctrl-C
				t.Error(err)
			}
		})
		if code != 130 {
			t.Errorf("exit code %d\n%q", code, text)
		}
		fits(t, text, `\[=*>? *\] \d+(/| of (about|at most) )\d{5,}`, columns)
		if columns == 80 {
			fits(t, text, `^    [0-9a-f]{64}$`, columns)
		}
		fits(t, text, `^  (Mesh|Ranks|Devices|Time|Memory|Checkpoints|Result) `, columns)
		fits(t, text, `^  Rank  `, columns)
		fits(t, text, `^  [01]     `, columns)
		if !strings.Contains(text, "\x1b[31mINTERRUPTED after") || !strings.Contains(text, "\x1b[1m  Rank  ") {
			t.Errorf("without colours:\n%q", text)
		}
		again := `launcher: --restart goes on after sweep \d+, from cps: \S+/launcher ` +
			regexp.QuoteMeta(strings.Join(args, " ")) + ` --restart\r\n$`
		if !regexp.MustCompile(again).MatchString(strings.ReplaceAll(text, "\r\n  ", " ")) {
			t.Errorf("no match of %s in\n%q", again, text)
		}
	}
	short := onRanks(2, "grid.nx=64", "grid.ny=64", "solver.max_iterations=20", "device.threads=64")
	for _, c := range []struct {
		env            []string
		colour, escape bool
	}{{nil, true, true}, {[]string{"NO_COLOR=1"}, false, true}, {[]string{"NO_COLOR="}, true, true},
		{[]string{"TERM=dumb"}, false, false}} {
		code, text := onTerminal(t, 80, c.env, short, nil)
		yellow := strings.Contains(text, "\x1b[33mlauncher: warning: device.threads 64: ") && strings.Contains(text,
			"\x1b[33mnot converged: ")
		if code != 0 || yellow != c.colour || colours.MatchString(text) != c.colour ||
			escapes.MatchString(text) != c.escape {
			t.Errorf("%v: exit code %d\n%q", c.env, code, text)
		}
	}
	// Without --long, what matters fits a screen, and no line is broken by the terminal.
	args = onRanks(2, "grid.nx=129", "grid.ny=129", "problem.preset=dirichlet",
		"problem.fixed=hypot(x-0.5, y-0.5) < 0.2", "problem.screening=0.5", "problem.source=1", "grid.dtype=float64",
		"solver.method=multigrid", "solver.tolerance=0", "solver.relative_tolerance=1e-8")
	code, text := onTerminal(t, 80, nil, args, nil)
	text = strings.ReplaceAll(text, "\r", "")
	fits(t, text, `^`, 80)
	_, summary, found := strings.Cut(escapes.ReplaceAllString(text, ""), "\nJacobi ")
	if code != 0 || !found || strings.Count(summary, "\n") > 24 || strings.Contains(summary, "Field SHA-256") ||
		!strings.Contains(summary, "--long also shows") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	code, text = onTerminal(t, 40, nil, append([]string{"doctor"}, append(short, set("problem.left=foo")...)...), nil)
	fits(t, text, `^`, 80)
	if code != 1 || !strings.Contains(text, "\x1b[31mfault: \x1b[0mproblem.left \"foo\": column 1:") ||
		!strings.Contains(text, "\x1b[31mThe run would not start.\x1b[0m") {
		t.Errorf("exit code %d\n%q", code, text)
	}
}

// With --quiet the launcher prints only failures and the result in one line.
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	args := append(set("grid.nx=64", "grid.ny=64", "solver.max_iterations=20", "device.threads=64"), "-np", "2",
		"--quiet")
	out := run(t, dir, "launcher", args...)
	if out.code != 0 || out.stderr != "" ||
		!regexp.MustCompile(`^not converged: stopped at max_iterations; norm \S+ after sweep 19 \(tolerance `+
			`1e-08\)\n$`).MatchString(out.stdout) {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	out = run(t, dir, "launcher", append(args, "--set", "grid.nx=2")...)
	if out.code != 1 || out.stdout != "" || out.stderr != "launcher: grid.nx 2: 3 to 2147483647 are allowed\n" {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// Bash completes keys, words and files with the script of the launcher, and other shells have one, too. The version is
// also a command.
func TestCompletionAndVersion(t *testing.T) {
	dir := t.TempDir()
	writeText(t, "", dir, "run.yaml")
	for begun, want := range map[string]string{"--set solver.method=m": "multigrid", "--set grid.dt": "grid.dtype=",
		"--config ru": "run.yaml"} {
		script := `source <(` + bin + `/launcher completion bash); COMP_WORDBREAKS=$' \t\n"=:'
			COMP_LINE="` + bin + `/launcher -np 2 ` + begun + `"; COMP_POINT=${#COMP_LINE}
			__start_launcher 2>/dev/null; echo "${COMPREPLY[@]}"`
		if out := run(t, dir, "/bin/bash", "--norc", "-c", script); out.stdout != want+"\n" {
			t.Errorf("bash completes %s to %q, want %s\n%s", begun, out.stdout, want, out.stderr)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		if out := mustRun(t, dir, "launcher", "completion", shell); !strings.Contains(out.stdout, "__complete") {
			t.Errorf("completion %s:\n%s%s", shell, out.stdout, out.stderr)
		}
	}
	command, flag := mustRun(t, dir, "launcher", "version"), mustRun(t, dir, "launcher", "--version")
	if command.stdout != flag.stdout || !strings.HasPrefix(command.stdout, "launcher "+version) {
		t.Errorf("version: %q, --version: %q", command.stdout, flag.stdout)
	}
}
