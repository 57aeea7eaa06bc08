package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/regular"
)

// Place is where the files of a run are staged until they are complete, and then put in place: output.dir, held by this
// process (Held) or by another one (internal/observe/farfiles). A file has the name that it will have. Those of a Zarr
// group are named with a slash, as in u.zarr/zarr.json, and are put in place as a whole.
type Place interface {
	// Create creates a file and reserves size bytes for it.
	Create(name string, size int64) (File, error)
	// Open opens a file that was created on any rank. way is how its bytes get there, for RankReport.Output.
	Open(name string) (f File, way string, err error)
	// Remove removes a file that is not in place. It succeeds if there is none.
	Remove(name string) error
	// Put puts a file, which must be durable, in place at once. A repeated call succeeds.
	Put(name string) error
	// Commit puts files, which must be durable, in place together. A repeated call has the outcome of the first.
	Commit(names []string) error
	// TrimSeries removes the files of the series with fields after more than the given number of sweeps.
	TrimSeries(sweeps int) error
	// GrowProbes creates the file of the probes, with the lines that an earlier run has written from before the given
	// number of sweeps, and returns its size. It is in place already.
	GrowProbes(before int) (f File, size int64, err error)
}

// File is a file of a Place.
type File interface {
	io.WriterAt
	// Sync makes the written bytes durable and releases unused reserved space.
	Sync() error
	Close() error
}

// local is a File on a file system of this machine.
type local struct {
	*os.File
	room int64 // reserved bytes; 0 once the unused ones are released
	// loose says that the file is one of many that can be made again: Sync leaves it to the system to write it to disk.
	loose bool
}

// createLocal creates a file and reserves size bytes for it on the file system of dir, which is output.dir.
func createLocal(dir, path string, size int64, loose bool) (File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { // within a Zarr group
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		if err := reserve(f, dir, size); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	return &local{f, size, loose}, nil
}

// OpenStaged opens a file that another process has created in a directory of stages. It is opened for writing only: an
// NFS client that has read a page writes back the whole page, with stale bytes of a neighbour's rows. Files of a study
// are loose: Sync leaves it to the system to write them to disk.
func OpenStaged(dir, name string, loose bool) (File, error) {
	f, err := regular.OpenFile(filepath.Join(dir, name), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &local{File: f, loose: loose}, nil
}

// flushBytes is how much is written at once before the system is asked to write it to disk. Otherwise most of a field
// would wait for Sync.
const flushBytes = 1 << 20

func (l *local) WriteAt(b []byte, at int64) (int, error) {
	n, err := l.File.WriteAt(b, at)
	if n >= flushBytes && !l.loose {
		// Sync reports what cannot be written.
		_ = unix.SyncFileRange(int(l.Fd()), at, int64(n), unix.SYNC_FILE_RANGE_WRITE)
	}
	return n, err
}

func (l *local) Sync() error {
	if l.room > 0 {
		fi, err := l.Stat()
		if err == nil && fi.Size() < l.room {
			err = l.Truncate(fi.Size())
		}
		if err != nil {
			return err
		}
		l.room = 0
	}
	if l.loose {
		return nil
	}
	return l.File.Sync()
}

// reserve allocates disk space for size bytes of f without changing its size. On a file system that cannot reserve
// space it only checks that the space is free.
func reserve(f *os.File, dir string, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC):
		// A failed fallocate may keep some space. Release it before AvailableBytes measures what is free.
		if err := f.Truncate(0); err != nil {
			return err
		}
		available, err := AvailableBytes(dir)
		if err != nil {
			return err
		}
		return noSpace(dir, size, available)
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
		return checkSpace(dir, size)
	}
	return fmt.Errorf("reserve %d bytes for %s: %w", size, f.Name(), err)
}

// write writes data to f from its beginning, makes it durable and closes f. After an error it can be called again.
func write(f File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
