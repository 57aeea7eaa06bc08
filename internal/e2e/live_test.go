package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// live is a launcher that runs while the test goes on.
type live struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string   // of stdout and stderr
	quiet  chan struct{} // closed at the end of the output: all processes have ended
	seen   strings.Builder
	before map[string]bool // the files in /dev/shm at the start
}

// endless is a run that would last for minutes. In float32 or on a smaller mesh it would stall too soon.
var endless = []string{
	"grid.nx=1024", "grid.ny=512", "grid.dtype=float64", "solver.max_iterations=1000000000", "solver.tolerance=0",
}

// The mesh of endless.
const endlessNX, endlessNY = 1024, 512

// progress matches the launcher's lines on how far the sweeps are.
const progress = `\d+ .*sweeps.*, norm \d`

// begin starts an endless run and waits until it sweeps.
func begin(t *testing.T, dir string, args ...string) *live {
	t.Helper()
	l := startLive(t, dir, append(args, set(endless...)...)...)
	l.waitFor(progress)
	return l
}

// yield makes the ranks of an endless run leave the cores to other tests. It is for tests that wait long for something
// else, and whose ranks have no short time limits.
func (l *live) yield() {
	l.t.Helper()
	for _, pid := range l.ranks() {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue // a rank that has ended
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err == nil {
				_ = unix.Setpriority(unix.PRIO_PROCESS, id, 10) // a thread that has ended needs none
			}
		}
	}
}

// startLive starts a launcher.
func startLive(t *testing.T, dir string, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return startCommand(t, command(ctx, dir, "launcher", args...))
}

// startCommand starts a command that is a launcher or executes one.
func startCommand(t *testing.T, cmd *exec.Cmd) *live {
	t.Helper()
	l := &live{t: t, cmd: cmd, lines: make(chan string, 1000), quiet: make(chan struct{}), before: sharedFiles(t)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.cmd.Stdout, l.cmd.Stderr = w, w
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		defer close(l.lines)
		defer close(l.quiet)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	return l
}

// waitFor reads output until a line matches.
func (l *live) waitFor(pattern string) string {
	l.t.Helper()
	re := regexp.MustCompile(pattern)
	for line := range l.lines {
		l.seen.WriteString(line + "\n")
		if re.MatchString(line) {
			return line
		}
	}
	l.t.Fatalf("no line matches %q in\n%s", pattern, l.seen.String())
	return ""
}

// end waits until the launcher has ended and returns its exit code and all its output.
func (l *live) end() (int, string) {
	l.t.Helper()
	for line := range l.lines {
		l.seen.WriteString(line + "\n")
	}
	err := l.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.t.Fatal(err)
	}
	return l.cmd.ProcessState.ExitCode(), l.seen.String()
}

// ends waits until the launcher has ended, checks its exit code and that its output matches the patterns, and returns
// the output.
func (l *live) ends(code int, patterns ...string) string {
	l.t.Helper()
	got, output := l.end()
	ok := got == code
	for _, p := range patterns {
		ok = ok && regexp.MustCompile(p).MatchString(output)
	}
	if !ok {
		l.t.Errorf("exit code %d\n%s\nwant %d and matches of %q", got, output, code, patterns)
	}
	return output
}

// signal sends the launcher a signal.
func (l *live) signal(sig os.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
}

// kill sends a process, as that of a rank, SIGKILL.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// ranks returns the process ids of the ranks of this launcher, which have its working directory.
func (l *live) ranks() []int {
	l.t.Helper()
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || exe != filepath.Join(bin, "jacobi-rank") {
			continue
		}
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && cwd == l.cmd.Dir {
			pids = append(pids, pid)
		}
	}
	return pids
}

// allRanks returns the process ids of all n ranks. It fails the test if there are more or fewer.
func (l *live) allRanks(n int) []int {
	l.t.Helper()
	pids := l.ranks()
	if len(pids) != n {
		l.t.Fatalf("%d ranks run, want %d", len(pids), n)
	}
	return pids
}

// leavesNothing checks that no process, no shared memory file and no partial output is left.
func (l *live) leavesNothing() {
	l.t.Helper()
	if pids := l.ranks(); len(pids) > 0 {
		l.t.Errorf("ranks still run: %v", pids)
	}
	for name := range sharedFiles(l.t) {
		if !l.before[name] && strings.Contains(name, "jacobi") {
			l.t.Errorf("/dev/shm/%s was left", name)
		}
	}
	err := filepath.WalkDir(l.cmd.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), "partial") {
			l.t.Errorf("%s was left", path)
		}
		return err
	})
	if err != nil {
		l.t.Error(err)
	}
}

func sharedFiles(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}
