// Package dirlock gives a directory to one run at a time.
package dirlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"jacobi/internal/regular"
	"jacobi/internal/show"
)

// File is the name of the lock in a directory. The kernel drops the lock when the process that holds it ends, however
// that comes about, so a file that was left behind keeps nobody out.
const File = ".jacobi-lock"

// Holder is who has a directory.
type Holder struct {
	Run   string    `json:"run"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Begun uint64    `json:"begun"` // when the process began, in ticks of the host's clock since it booted
	Since time.Time `json:"since"`
}

// String names the holder for messages.
func (h Holder) String() string {
	return fmt.Sprintf("run %s, process %d on %s, since %s",
		show.Text(h.Run), h.PID, show.Text(h.Host), h.Since.Local().Format(time.DateTime))
}

// HeldError says that another run has the directory.
type HeldError struct{ Holder Holder }

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return "another run uses it"
	}
	return "in use by " + e.Holder.String() + "; one run at a time can use a directory"
}

// Lock is a directory that this process holds.
type Lock struct {
	file *os.File
	path string
}

const (
	// A look at a lock holds it for a moment.
	tries = 5
	pause = 20 * time.Millisecond
)

// Take locks dir for a run, or returns a HeldError.
func Take(dir, run string) (*Lock, error) {
	path := filepath.Join(dir, File)
	var err error
	for try := range tries {
		if try > 0 {
			time.Sleep(pause)
		}
		var f *os.File
		if f, err = regular.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666); err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err = grasp(f, unix.LOCK_EX); err == nil && !isAt(f, path) {
			err = errors.New("it is taken and released again and again")
		}
		if err == nil {
			if err = note(f, run); err == nil {
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

// Check returns a HeldError if a run has dir. It makes nothing.
func Check(dir string) error {
	path := filepath.Join(dir, File)
	f, err := regular.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // a dir that is no directory has no run either
		return nil
	}
	if err == nil {
		defer f.Close() // which releases it
		err = grasp(f, unix.LOCK_SH)
	}
	if held, ok := errors.AsType[*HeldError](err); ok {
		return held
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// Release gives the directory back.
func (l *Lock) Release() error {
	// Removed first: whoever opens the file afterwards sees that it is not the one at the path any more.
	return errors.Join(os.Remove(l.path), l.file.Close())
}

// grasp takes the kernel's lock on f. Where the file system has none, it judges by what the holder wrote.
func grasp(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		holder, _ := read(f) // if it has not noted itself yet, it has no name
		return &HeldError{holder}
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		if holder, ok := read(f); ok && holder.mayLive() {
			return &HeldError{holder}
		}
		return nil
	}
	return err
}

// isAt says whether f is still the file at path.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// note writes into f who holds it.
func note(f *os.File, run string) error {
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

// maxNote is more than a note has.
const maxNote = 64 << 10

func read(f *os.File) (h Holder, ok bool) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxNote))
	return h, err == nil && json.Unmarshal(b, &h) == nil
}

// mayLive says whether the process may still be there: on another host that cannot be known.
func (h Holder) mayLive() bool {
	host, err := os.Hostname()
	if err != nil || host != h.Host {
		return true
	}
	begun, err := begunAt(h.PID)
	return err == nil && begun == h.Begun
}
