package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
)

const (
	partialSuffix = ".partial"
	nonceLength   = 26 // of rand.Text
)

// Place is the destination of a run's files: a directory held by this process (Held) or by another one.
type Place interface {
	// Create creates the partial file for name and reserves size bytes for it.
	Create(name, runID string, size int64) (Partial, error)
	// Commit gives partial files, which must be durable, their final names together. A repeated call with the same
	// files succeeds.
	Commit(files []string) error
	// PutInSeries gives a partial file of the series of o, which must be durable, its final name at once, and brings
	// the index of the series up to date. A repeated call succeeds.
	PutInSeries(o configs.Output, file string) error
	// GrowProbes creates the file of the probes, with the lines that an earlier run has written from before the given
	// number of sweeps, and returns its size. It has its final name already.
	GrowProbes(runID string, before int) (Partial, int64, error)
	// TrimSeries removes the files of the series with fields after more than the given number of sweeps.
	TrimSeries(o configs.Output, sweeps int) error
}

// Partial is a file under a temporary name. It gets its final name only when it is complete, so an existing file of
// that name stays until then.
type Partial interface {
	io.Writer
	io.WriterAt
	// File returns the temporary name, .<name>.<run>.<nonce>.partial, which is unique to the run.
	File() string
	// Sync makes the written bytes durable and releases unused reserved space.
	Sync() error
	// Close closes the file and keeps it.
	Close() error
	// Abort closes and removes the file. After Close or Abort it does nothing.
	Abort() error
}

// Dir is a directory of this machine.
type Dir string

// Create implements Place. It fails if name leads out of the directory.
func (d Dir) Create(name, runID string, size int64) (Partial, error) {
	file, err := NewPartialName(name, runID)
	if err != nil {
		return nil, err
	}
	return d.CreateAs(file, size)
}

// NewPartialName returns a new temporary name for the file name.
func NewPartialName(name, runID string) (string, error) {
	for what, s := range map[string]string{"name": name, "run id": runID} {
		if err := checkName(s); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
	}
	return "." + name + "." + runID + "." + rand.Text() + partialSuffix, nil
}

// NameOfPartial returns the final name of the partial file called file. It fails if the file is not of the run.
func NameOfPartial(file, runID string) (string, error) {
	rest, dot := strings.CutPrefix(file, ".")
	rest, suffix := strings.CutSuffix(rest, partialSuffix)
	at := strings.LastIndexByte(rest, '.') // before the nonce
	if !dot || !suffix || at < 0 || checkName(file) != nil {
		return "", fmt.Errorf("%q is not a partial file", file)
	}
	name, ofRun := strings.CutSuffix(rest[:at], "."+runID)
	if !ofRun || checkName(name) != nil {
		return "", fmt.Errorf("%q is not a partial file of run %s", file, runID)
	}
	return name, nil
}

// CreateAs creates a partial file called file, which NewPartialName has returned, and reserves size bytes for it.
func (d Dir) CreateAs(file string, size int64) (Partial, error) {
	f, err := os.OpenFile(filepath.Join(string(d), file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	p := &partial{file: f, room: size}
	if size > 0 {
		if err := reserve(f, string(d), size); err != nil {
			return nil, errors.Join(err, p.Abort())
		}
	}
	return p, nil
}

// Reopen opens a partial file that another process has created.
func (d Dir) Reopen(file string) (Partial, error) {
	f, err := regular.OpenFile(filepath.Join(string(d), file), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &partial{file: f}, nil
}

// partial is a Partial on a file system of this machine.
type partial struct {
	file *os.File
	room int64 // reserved bytes; 0 once the unused ones are released
	// loose says that the file is one of many that can be made again: Sync leaves it to the system to write it to disk.
	loose bool
}

// Loose makes p, a partial file of a study, one that Sync does not write to disk.
func Loose(p Partial) {
	if own, ok := p.(*partial); ok {
		own.loose = true
	}
}

func (p *partial) Write(b []byte) (int, error) { return p.file.Write(b) }
func (p *partial) File() string                { return filepath.Base(p.file.Name()) }
func (p *partial) Close() error                { return p.file.Close() }

// flushBytes is how much is written at once before the system is asked to write it to disk. Otherwise most of a field
// would wait for Sync.
const flushBytes = 1 << 20

func (p *partial) WriteAt(b []byte, at int64) (int, error) {
	n, err := p.file.WriteAt(b, at)
	if n >= flushBytes && !p.loose {
		// Sync reports what cannot be written.
		_ = unix.SyncFileRange(int(p.file.Fd()), at, int64(n), unix.SYNC_FILE_RANGE_WRITE)
	}
	return n, err
}

func (p *partial) Sync() error {
	if p.room > 0 {
		fi, err := p.file.Stat()
		if err == nil && fi.Size() < p.room {
			err = p.file.Truncate(fi.Size())
		}
		if err != nil {
			return err
		}
		p.room = 0
	}
	if p.loose {
		return nil
	}
	return p.file.Sync()
}

func (p *partial) Abort() error {
	if err := p.Close(); errors.Is(err, os.ErrClosed) {
		return nil
	}
	return os.Remove(p.file.Name())
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
		return CheckSpace(dir, size)
	}
	return fmt.Errorf("reserve %d bytes for %s: %w", size, f.Name(), err)
}

// WriteFile writes the file name in dir, either completely or not at all.
func WriteFile(dir, name, runID string, data []byte) error {
	p, err := Dir(dir).Create(name, runID, 0)
	if err != nil {
		return err
	}
	defer p.Abort()
	if err := finish(p, data); err != nil {
		return err
	}
	return rename(dir, []string{p.File()}, runID, nil)
}

// finish writes data to p, makes it durable and closes p.
func finish(p Partial, data []byte) error {
	if _, err := p.Write(data); err != nil {
		return err
	}
	if err := p.Sync(); err != nil {
		return err
	}
	return p.Close()
}

// rename gives partial files of a run their final names, in this order. A missing file counts as renamed already.
// inodes are those of files that become Zarr groups, if a crash may have cut an earlier call short.
func rename(dir string, files []string, runID string, inodes map[string]uint64) error {
	for _, file := range files {
		name, err := NameOfPartial(file, runID)
		if err != nil {
			return err
		}
		if isZarr(name) {
			err = PlaceGroup(dir, file, name, inodes[file])
		} else {
			err = os.Rename(filepath.Join(dir, file), filepath.Join(dir, name))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return durable.SyncDir(dir)
}

// checkName refuses a name that is not a plain file name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a plain file name", name)
	}
	return nil
}
