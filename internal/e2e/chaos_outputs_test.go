package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// startCommit starts a run and interrupts it after a checkpoint. It returns when the first of the outputs is in
// place.
func (s *chaosRun) startCommit() *live {
	s.Helper()
	out := filepath.Join(s.dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		s.Fatal(err)
	}
	w := watched(s.T, out)
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
	data, err := os.ReadFile(filepath.Join(s.dir, "out", "report.json"))
	if err != nil {
		s.Fatal(err)
	}
	var set fileSet
	if err := json.Unmarshal(data, &set); err != nil || len(set.Files) != 2 {
		s.Fatalf("%v: %+v", err, set)
	}
	history, err := os.ReadFile(filepath.Join(s.dir, "out", set.Files[0].Name))
	if err != nil {
		s.Fatal(err)
	}
	if sum := sha256.Sum256(history); hex.EncodeToString(sum[:]) != set.Files[0].SHA256 {
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
