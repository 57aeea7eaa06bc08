// Package regular opens files that somebody else may have written, or replaced, and that have to be regular files. An
// ordinary open waits at a named pipe until somebody opens its other end, and no signal or deadline of a program ends
// that wait; a device may have no end. Every file whose name a user gives, or which lies in a directory that others
// share, is opened here.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens the file at path for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile that neither waits nor returns anything but a regular file. Its error is an *fs.PathError.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	// A regular file does not know O_NONBLOCK, save that a lease which somebody holds on it is no cause to wait.
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if err != nil {
		return nil, explain(path, flag, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// explain says of what kind a file is that cannot be opened because of its kind.
func explain(path string, flag int, err error) error {
	look := os.Stat
	switch {
	case errors.Is(err, unix.ELOOP) && flag&unix.O_NOFOLLOW != 0:
		look = os.Lstat
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR): // a socket, or a named pipe that nobody reads
	default:
		return err
	}
	if info, e := look(path); e == nil {
		if e := check(path, info); e != nil {
			return e
		}
	}
	return err
}

func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: KindError{info.Mode().Type()}}
}

// KindError says of what kind a file is that is not regular.
type KindError struct{ Type fs.FileMode }

func (e KindError) Error() string { return e.kind() + "; a regular file is wanted" }

func (e KindError) kind() string {
	switch {
	case e.Type&fs.ModeDir != 0:
		return "a directory"
	case e.Type&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case e.Type&fs.ModeSocket != 0:
		return "a socket"
	case e.Type&fs.ModeSymlink != 0:
		return "a symbolic link"
	case e.Type&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// ReadFile returns what the file at path holds, at most limit bytes. A larger file is an error.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, limit)
}

// ReadPrivate is ReadFile for a file that holds a secret of this user's: it refuses a symbolic link, and a file that
// belongs to somebody else or to which others have any right.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf(format, args...)}
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() {
		return refuse("it belongs to user %d, and this is user %d", owner, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return refuse("mode %#o: its owner alone may have rights to it", mode)
	}
	return read(f, limit)
}

// read does not trust the size that a file says it has: those of /proc say 0.
func read(f *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("more than %d bytes", limit)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
