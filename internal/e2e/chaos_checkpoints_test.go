package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	if code == 0 {
		return s.checkAnswer(code, output)
	}
	if restart {
		s.Fatalf("exit code %d\n%s", code, output)
	}
	// The user resumes it with another number of ranks.
	first := s.checkKilled(code, output)
	s.np = 1 + s.rand.IntN(5)
	out := run(s.T, s.dir, "launcher", s.args([]string{s.transport()}, "--restart")...)
	return first + "; --restart: " + s.checkAnswer(out.code, out.stderr)
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

// damage kills the launcher, damages the newest checkpoint or both of them, and resumes.
func (s *chaosRun) damage(how func(r *rand.Rand, path string) (string, error)) string {
	l := s.start(s.args([]string{s.transport()})...)
	s.hit = len(l.ranks()) > 0
	if err := l.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	code, output := l.end()
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
