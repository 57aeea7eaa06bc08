// Package dirlock locks a directory, or a file, for one run at a time.
package dirlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"jacobi/internal/base/regular"
	"jacobi/internal/base/show"
)

// File is the name of the lock file in a directory. The kernel releases the lock when its process ends in any way, so a
// file that was left behind locks no run out.
const File = ".jacobi-lock"

// Holder describes the process that has locked a directory.
type Holder struct {
	Run   string    `json:"run"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Begun uint64    `json:"begun"` // start of the process, in ticks since the host booted
	Since time.Time `json:"since"`
}

// String names the holder for messages.
func (h Holder) String() string {
	return fmt.Sprintf("run %s, process %d on %s, since %s",
		show.Text(h.Run), h.PID, show.Text(h.Host), h.Since.Local().Format(time.DateTime))
}

// HeldError reports that another run has the lock.
type HeldError struct {
	Holder Holder
	file   string // of the lock
}

func (e *HeldError) Error() string {
	switch {
	case e.Holder.PID == 0:
		return "another run uses it"
	case !e.Holder.mayLive():
		return fmt.Sprintf("another process has locked %s, which process %d left when it ended; remove that file "+
			"if no run uses it", e.file, e.Holder.PID)
	}
	return "in use by " + e.Holder.String() + "; one run at a time can use it"
}

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
	path string
}

const (
	// Check holds the lock for a moment, so Take tries again.
	tries = 5
	pause = 20 * time.Millisecond

	// A process that is killed while it starts another one leaves the lock with that one until it runs its program,
	// which takes a while on a busy machine. So a lock whose holder has ended is tried for longer.
	endedTries = 50
)

// patience returns the number of tries to take a lock after one failed with err: n, or more if its holder has ended.
func patience(n int, err error) int {
	if held, ok := errors.AsType[*HeldError](err); ok && held.Holder.PID != 0 && !held.Holder.mayLive() {
		return endedTries
	}
	return n
}

// Take locks dir for a run. It returns a *HeldError if another run has locked it.
func Take(dir, run string) (*Lock, error) { return take(filepath.Join(dir, File), run) }

// TakeFile is Take for the file at path. The lock is a hidden file beside it: the file may be replaced meanwhile.
func TakeFile(path, run string) (*Lock, error) {
	return take(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"), run)
}

// take takes the lock at path.
func take(path, run string) (*Lock, error) {
	var err error
	for try := 0; try < patience(tries, err); try++ {
		if try > 0 {
			time.Sleep(pause)
		}
		var f *os.File
		if f, err = regular.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err = closeToReaders(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err = tryLock(f, unix.LOCK_EX); err == nil && !isAt(f, path) {
			err = errors.New("other processes lock and release it all the time")
		}
		if err == nil {
			if err = writeHolder(f, run); err == nil {
				return &Lock{f, path}, nil
			}
		}
		f.Close()
	}
	if held, ok := errors.AsType[*HeldError](err); ok {
		return nil, held
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// closeToReaders takes the right to read f from those who may not write it: whoever can open a file can lock it.
func closeToReaders(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	writers := info.Mode().Perm() & 0o222
	if mode := writers | writers<<1; mode != info.Mode().Perm() {
		if err := f.Chmod(mode); err != nil && !errors.Is(err, fs.ErrPermission) { // of a file of another user
			return err
		}
	}
	return nil
}

// Check returns a *HeldError if a run has locked dir. It creates no file.
func Check(dir string) error {
	path := filepath.Join(dir, File)
	f, err := regular.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // a dir that is no directory has no run either
		return nil
	}
	if err == nil {
		defer f.Close() // releases the lock
		for try := 0; try < patience(1, err); try++ {
			if try > 0 {
				time.Sleep(pause)
			}
			err = tryLock(f, unix.LOCK_SH)
		}
	}
	if held, ok := errors.AsType[*HeldError](err); ok {
		return held
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// Release gives the lock back.
func (l *Lock) Release() error {
	// The file is removed first: a process that has opened it, and locks it next, sees that it is no longer at the
	// path.
	return errors.Join(os.Remove(l.path), l.file.Close())
}

// tryLock takes the kernel's lock on f. If the file system has no locks, it decides by the holder that is written in f.
func tryLock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		holder, _ := readHolder(f) // empty if the holder has not written it yet
		return &HeldError{holder, filepath.Base(f.Name())}
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		if holder, ok := readHolder(f); ok && holder.mayLive() {
			return &HeldError{holder, filepath.Base(f.Name())}
		}
		return nil
	}
	return err
}

// isAt reports whether f is still the file at path.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// writeHolder writes the holder of the lock, this process, to f.
func writeHolder(f *os.File, run string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	begun, err := begunAt(os.Getpid())
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Second)
	b, err := json.Marshal(Holder{Run: run, Host: host, PID: os.Getpid(), Begun: begun, Since: now})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	return err
}

// maxHolder bounds the size of a written Holder, in bytes; it is far above what one has.
const maxHolder = 64 << 10

func readHolder(f *os.File) (h Holder, ok bool) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	return h, err == nil && json.Unmarshal(b, &h) == nil
}

// mayLive reports whether the holder may still run. A process on another host always may.
func (h Holder) mayLive() bool {
	host, err := os.Hostname()
	if err != nil || host != h.Host {
		return true
	}
	begun, err := begunAt(h.PID)
	return err == nil && begun == h.Begun
}

// begunAt returns the start time of a process of this host, in ticks of its clock. A process number may be used again,
// but not with the same start time.
func begunAt(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return stat.Starttime, err
}
