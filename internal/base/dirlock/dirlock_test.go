package dirlock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets this binary act as a run in another process: it takes a lock, reports it, and waits until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DIRLOCK_TEST_TAKE"); dir != "" {
		l, err := Take(dir, "other")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("taken")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		runtime.KeepAlive(l)
	}
	os.Exit(m.Run())
}

// While another process holds a directory, Take fails with an error that names it. Take succeeds once that process is
// killed.
func TestLockLivesAsLongAsItsProcess(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "DIRLOCK_TEST_TAKE="+dir)
	if _, err := other.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }() // it was killed, so this is an error
	defer func() { _ = other.Process.Kill() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "taken\n" {
		t.Fatalf("%q, %v", line, err)
	}
	const format = `^in use by run other, process %d on \S+, since \d{4}-\d\d-\d\d `
	want := regexp.MustCompile(fmt.Sprintf(format, other.Process.Pid))
	_, err = Take(dir, "mine")
	for name, err := range map[string]error{"Take": err, "Check": Check(dir)} {
		if _, held := errors.AsType[*HeldError](err); !held || !want.MatchString(err.Error()) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // it was killed, so this is an error
	if _, err := os.Stat(filepath.Join(dir, File)); err != nil {
		t.Errorf("what was killed cannot have removed its file: %v", err)
	}
	if err := Check(dir); err != nil {
		t.Error(err)
	}
	l, err := Take(dir, "mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// On a file system without locks, a holder is judged by its host, its process number and its start time.
func TestHolderMayLive(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	begun, err := begunAt(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		h    Holder
		want bool
	}{
		{Holder{Host: host, PID: os.Getpid(), Begun: begun}, true},
		{Holder{Host: host, PID: os.Getpid(), Begun: begun - 1}, false}, // another process has the number now
		{Holder{Host: host, PID: 1 << 30, Begun: begun}, false},
		{Holder{Host: host + "x", PID: 1 << 30}, true},
	} {
		if got := c.h.mayLive(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.h, got, c.want)
		}
	}
}

// Those who may not write the lock file may not open it: they could lock it. A file that was left behind is closed to
// them, too.
func TestReadersCannotLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, File)
	for before, want := range map[os.FileMode]os.FileMode{0: 0o600, 0o644: 0o600, 0o664: 0o660, 0o666: 0o666} {
		if before != 0 {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, before); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Take(dir, "mine")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %v after %v, %v; want %v", info.Mode(), before, err, want)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// leaveLock makes the lock file of a run that has ended, and a lock on it that somebody else holds.
func leaveLock(t *testing.T, dir string) (stranger *os.File) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, File)
	left := fmt.Sprintf(`{"run": "old", "host": %q, "pid": %d, "begun": 1}`, host, 1<<30)
	if err := os.WriteFile(path, []byte(left), 0o644); err != nil {
		t.Fatal(err)
	}
	if stranger, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stranger.Close() })
	if err := unix.Flock(int(stranger.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return stranger
}

// A process that was killed while it started another one leaves its lock with that one, for a moment.
func TestLockOfAProcessThatWasBeingStarted(t *testing.T) {
	for name, try := range map[string]func(dir string) error{
		"Check": Check,
		"Take": func(dir string) error {
			l, err := Take(dir, "mine")
			if err == nil {
				err = l.Release()
			}
			return err
		},
	} {
		dir := t.TempDir()
		child := leaveLock(t, dir)
		time.AfterFunc(2*tries*pause, func() { child.Close() })
		if err := try(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A process that has locked the file of a run that has ended is not named as that run.
func TestStrangerHoldsALeftLock(t *testing.T) {
	dir := t.TempDir()
	leaveLock(t, dir)
	const want = "another process has locked .jacobi-lock, which process 1073741824 left when it ended; remove that " +
		"file if no run uses it"
	if _, err := Take(dir, "mine"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A pipe, a link or a directory in place of the lock file is named in the error. Neither Take nor Check blocks on it or
// follows it.
func TestPlantedLocks(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"FIFO": func(path string) error { return unix.Mkfifo(path, 0o666) },
		"link": func(path string) error { return os.Symlink("/dev/null", path) },
		"dir":  func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, File)
		if err := plant(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Take(dir, "mine"); err == nil || !strings.HasPrefix(err.Error(), "lock: open "+path+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := Check(dir); err == nil {
			t.Errorf("%s: Check finds nothing", name)
		}
	}
}

// The lock of a file is a file beside it: it locks neither the directory nor its other files, and may be taken where
// the file does not exist.
func TestLockOfAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.csv")
	l, err := TakeFile(path, "mine")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(fmt.Sprintf(`^in use by run mine, process %d on .*; one run at a time can use it$`,
		os.Getpid()))
	if _, err := TakeFile(path, "other"); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("%v, want %v", err, want)
	}
	beside, err := TakeFile(filepath.Join(dir, "u.csv"), "other")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Take(dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Release(), beside.Release(), all.Release()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
