package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"jacobi/internal/base/proctest"
)

// killInCheckpoint kills a rank while a checkpoint is being written, without or with a restart.
func (s *chaosRun) killInCheckpoint() string {
	restart := s.rand.IntN(2) == 0
	args := s.args([]string{s.transport()})
	if restart {
		args = append(args, "--max-restarts", "3")
	}
	l := s.start(args...)
	awaitName(s.T, filepath.Join(s.dir, "checkpoints"),
		func(name string) bool { return strings.HasSuffix(name, ".unsealed") }, l)
	s.signalRank(l, syscall.SIGKILL)
	code, output := l.end()
	l.leavesNothing()
	if left, err := filepath.Glob(filepath.Join(s.dir, "checkpoints", ".*")); err != nil || len(left) > 0 {
		s.Errorf("%v, %v: half a checkpoint was left", left, err)
	}
	if code == 0 || restart {
		return s.checkAnswer(code, output)
	}
	// The user resumes it with another number of ranks.
	return s.checkKilled(code, output) + "; " + s.restart()
}

func flipByte(r *rand.Rand, path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := r.IntN(len(b))
	b[at] ^= 1 << r.IntN(8)
	return fmt.Sprintf("byte %d of %s", at, filepath.Base(path)), os.WriteFile(path, b, 0o666)
}

func truncate(r *rand.Rand, path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	n := r.Int64N(fi.Size())
	return fmt.Sprintf("%s to %d bytes", filepath.Base(path), n), os.Truncate(path, n)
}

// damage kills the launcher, with which its ranks end, damages the newest checkpoint or both of them, and resumes.
func (s *chaosRun) damage(how func(r *rand.Rand, path string) (string, error)) string {
	l := s.start(s.args([]string{s.transport()})...)
	var ranks []*proctest.Process
	for _, pid := range l.ranks() {
		if p, err := proctest.Watch(s.T, pid); err == nil { // otherwise it has ended
			ranks = append(ranks, p)
		}
	}
	s.hit = len(ranks) > 0
	if err := l.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	code, output := l.end()
	for _, p := range ranks {
		if err := p.AwaitEnd(5 * time.Second); err != nil {
			s.Errorf("a rank outlives its launcher: %v", err)
		}
	}
	sets := checkpoints(s.T, filepath.Join(s.dir, "checkpoints"))
	if len(sets) == 0 { // on a slow disk, a fast run may end before its first checkpoint
		return s.checkAnswer(code, output)
	}
	all := how != nil && s.rand.IntN(3) == 0
	var damaged []string
	for i := len(sets) - 1; how != nil && i >= 0 && (all || len(damaged) == 0); i-- {
		files, err := os.ReadDir(sets[i])
		if err != nil {
			s.Fatal(err)
		}
		file := files[s.rand.IntN(len(files))].Name()
		what, err := how(s.rand, filepath.Join(sets[i], file))
		if err != nil {
			s.Fatal(err)
		}
		s.fault += ", " + what
		damaged = append(damaged, filepath.Base(sets[i]))
	}
	s.np = 1 + s.rand.IntN(5)
	out := run(s.T, s.dir, "launcher", s.args([]string{s.transport()}, "--restart")...)
	for _, set := range damaged {
		if !strings.Contains(out.stderr, set+": ") {
			s.Errorf("%s is not named\n%s", set, out.stderr)
		}
	}
	if len(damaged) == len(sets) {
		if out.code != 1 || !strings.Contains(out.stderr, "no checkpoint is intact: ") {
			s.Fatalf("exit code %d\n%s\nwant 1 and no intact checkpoint", out.code, out.stderr)
		}
		return "right error: no checkpoint is intact"
	}
	return s.checkAnswer(out.code, out.stderr)
}

// fillDisk fills a small file system that has the checkpoints.
func (s *chaosRun) fillDisk() string {
	dir := filepath.Join(s.dir, "checkpoints")
	if err := os.Mkdir(dir, 0o777); err != nil {
		s.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400k"); err != nil {
		s.hit = true // TestChaos must not report that the fault never happened
		return fmt.Sprintf("NOT RUN: a tmpfs cannot be mounted: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			s.Error(err)
		}
	}()
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		s.Fatal(err)
	}
	for range 1 << 10 { // more than there is room for
		if _, err = filler.Write(make([]byte, 1<<10)); err != nil {
			break
		}
	}
	filler.Close()
	code, output := l.end()
	s.hit = strings.Contains(output, "failed, the run goes on; the last good one is of sweep ")
	return s.checkAnswer(code, output)
}

// watchOutputs makes the directory of the outputs and watches it.
func (s *chaosRun) watchOutputs() *fsnotify.Watcher {
	s.Helper()
	out := filepath.Join(s.dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		s.Fatal(err)
	}
	return watched(s.T, out)
}

// startCommit starts a run and interrupts it after a checkpoint. It returns when the first of the outputs is in
// place.
func (s *chaosRun) startCommit() *live {
	s.Helper()
	w := s.watchOutputs()
	l := s.start(s.args([]string{s.transport()})...)
	s.hit = l.cmd.Process.Signal(os.Interrupt) == nil
	awaitMade(s.T, w, "history.csv", l)
	return l
}

// restart resumes from the newest checkpoint with another number of ranks and checks the answer.
func (s *chaosRun) restart() string {
	s.Helper()
	s.np = 1 + s.rand.IntN(5)
	out := run(s.T, s.dir, "launcher", s.args([]string{s.transport()}, "--restart")...)
	return "--restart: " + s.checkAnswer(out.code, out.stderr)
}

// checkOneRun checks that history and report are of one run.
func (s *chaosRun) checkOneRun() {
	s.Helper()
	var set fileSet
	if err := json.Unmarshal([]byte(readText(s.T, s.dir, "out", "report.json")), &set); err != nil ||
		len(set.Files) != 2 {
		s.Fatalf("%v: %+v", err, set)
	}
	if rowsOf(s.T, filepath.Join(s.dir, "out", set.Files[0].Name), 0) != set.Files[0].SHA256 {
		s.Errorf("the history is not of run %s", set.RunID)
	}
}

// interruptAtOutputs sends the second SIGINT while the outputs are committed.
func (s *chaosRun) interruptAtOutputs() string {
	l := s.startCommit()
	_ = l.cmd.Process.Signal(os.Interrupt) // the run may be over
	code, output := l.end()
	if code == 0 { // it had ended before
		s.hit = false
		return s.checkAnswer(code, output)
	}
	// Once all is in place, the signal has its default action, which a shell shows as 130, too.
	if status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGINT {
		code = 130
	}
	if code != 130 || strings.Contains(output, "outputs of earlier runs are as they were") {
		s.Fatalf("exit code %d\n%s\nwant 130, and the outputs of this run", code, output)
	}
	l.leavesNothing()
	s.checkOneRun()
	return "one set of files; " + s.restart()
}

// killAtOutputs kills the launcher while the outputs are committed.
func (s *chaosRun) killAtOutputs() string {
	l := s.startCommit()
	_ = l.cmd.Process.Kill() // the run may be over
	l.end()
	out := run(s.T, s.dir, "launcher", append(set("grid.nx=64", "grid.ny=64"), "doctor", "-np", "1")...)
	if out.code != 0 {
		s.Fatalf("exit code %d\n%s", out.code, out.stdout)
	}
	s.checkOneRun()
	return "one set of files; " + s.restart()
}

// secondRun starts another run in the directories of the first one.
func (s *chaosRun) secondRun() string {
	l := s.start(s.args([]string{"halo.transport=nats"})...)
	out := run(s.T, s.dir, "launcher", s.args(nil)...)
	s.hit = out.code == 1
	// A run that ends releases checkpoint.dir last.
	if want := `checkpoint.dir "checkpoints": in use by run `; s.hit && !strings.Contains(out.stderr, want) {
		s.Errorf("%s\nwant %s", out.stderr, want)
	}
	return "refused; " + s.checkAnswer(l.end())
}

// plantPipe creates a named pipe with the name of an output.
func (s *chaosRun) plantPipe() string {
	l := s.start(s.args([]string{s.transport()})...)
	path := filepath.Join("out", "history.csv")
	s.hit = syscall.Mkfifo(filepath.Join(s.dir, path), 0o666) == nil
	code, output := l.end()
	if !s.hit || code == 0 { // a pipe that comes after the names were checked is replaced
		return s.checkAnswer(code, output)
	}
	want := "put the outputs in place: " + path + " exists and is no regular file"
	if code != 1 || !strings.Contains(output, want) {
		s.Fatalf("exit code %d\n%s\nwant 1 and %s", code, output, want)
	}
	l.leavesNothing()
	if err := os.Remove(filepath.Join(s.dir, path)); err != nil {
		s.Fatal(err)
	}
	return "right error; " + s.restart()
}
