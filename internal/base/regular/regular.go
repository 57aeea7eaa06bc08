// Package regular opens files that must be regular files although another program may have written or replaced them. An
// ordinary open of a named pipe waits until another process opens its other end, and no signal or deadline of the
// program ends that wait. A device may have no end. This package opens each file whose name a user gives, and each file
// in a directory that others share.
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

// OpenFile is like os.OpenFile, but it never waits, and it refuses files that are not regular and files of the kernel.
// Its error is an *fs.PathError.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	// On a regular file O_NONBLOCK has one effect: open does not wait for the holder of a lease.
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
	if err != nil {
		return nil, explain(path, flag, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = check(path, info)
	}
	if err == nil {
		err = checkSystem(path, f)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// explain replaces the error of a failed open by a KindError if the file is not regular.
func explain(path string, flag int, err error) error {
	look := os.Stat
	switch {
	case errors.Is(err, unix.ELOOP) && flag&unix.O_NOFOLLOW != 0:
		look = os.Lstat
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR): // a socket, a pipe without a reader, a directory
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

// checkSystem refuses the files of the kernel. They are regular by their mode, and some of them, such as /proc/kmsg,
// have no end: a read waits for what the kernel has to say.
func checkSystem(path string, f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var system unix.Statfs_t
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &system) }); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	name, ok := map[int64]string{unix.PROC_SUPER_MAGIC: "procfs", unix.SYSFS_MAGIC: "sysfs",
		unix.DEBUGFS_MAGIC: "debugfs", unix.TRACEFS_MAGIC: "tracefs", unix.SECURITYFS_MAGIC: "securityfs",
		unix.CGROUP2_SUPER_MAGIC: "cgroup2"}[int64(system.Type)]
	if ok {
		return &fs.PathError{Op: "open", Path: path, Err: SystemError(name)}
	}
	return nil
}

// SystemError is the error for a file of a file system of the kernel, by its name.
type SystemError string

func (e SystemError) Error() string {
	return "a file of the kernel (" + string(e) + "), not a regular file"
}

// KindError is the error for a file that is not regular.
type KindError struct{ Type fs.FileMode }

func (e KindError) Error() string { return e.kind() + ", not a regular file" }

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

// ReadFile returns the contents of the file at path. A file of more than limit bytes is an error.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, limit)
}

// ReadPrivate is like ReadFile for a file that holds a secret of this user. It refuses a symbolic link, a file of
// another user, and a file to which others have any right.
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

// read ignores the size that the file system reports: the file may grow.
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
