// Package output writes the files of a run: field, picture, history and report. Each file is staged in a directory of
// the run and put in place when it is complete, so an existing file is only ever replaced by a complete one.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/internal/base/regular"
	"jacobi/solver"
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
	// unsynced says that the file can be made again: Sync leaves it to the system to write it to disk.
	unsynced bool
}

// createLocal creates a file and reserves size bytes for it on the file system of dir, which is output.dir.
func createLocal(dir, path string, size int64, unsynced bool) (File, error) {
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
	return &local{f, size, unsynced}, nil
}

// OpenStaged opens a file that another process has created in a directory of stages. It is opened for writing only: an
// NFS client that has read a page writes back the whole page, with stale bytes of a neighbour's rows. Files of a study
// are unsynced: Sync leaves it to the system to write them to disk.
func OpenStaged(dir, name string, unsynced bool) (File, error) {
	f, err := regular.OpenFile(filepath.Join(dir, name), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &local{File: f, unsynced: unsynced}, nil
}

// flushBytes is how much is written at once before the system is asked to write it to disk. Otherwise most of a field
// would wait for Sync.
const flushBytes = 1 << 20

func (l *local) WriteAt(b []byte, at int64) (int, error) {
	n, err := l.File.WriteAt(b, at)
	if n >= flushBytes && !l.unsynced {
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
	if l.unsynced {
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

// CheckDir creates the output directory if it does not exist. It makes and removes a directory there to prove that runs
// can.
func CheckDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("output.dir %q: cannot be created: %w", dir, err)
	}
	s, err := newStage(dir, "check")
	if err == nil {
		err = os.RemoveAll(s.path("")) // a run that starts there may have removed it as a leftover
	}
	if err != nil {
		return fmt.Errorf("output.dir %q: cannot be written: %w", dir, err)
	}
	return nil
}

// CheckFree is CheckDir for a directory that no run may hold. Without create it leaves a missing directory to the run,
// and checks that the run can create it.
func CheckFree(dir string, create bool) error {
	if !create {
		exists, err := CheckParent(dir)
		if err != nil {
			return fmt.Errorf("output.dir %q: cannot be created: %w", dir, err)
		}
		if !exists {
			return nil
		}
	}
	if err := CheckDir(dir); err != nil {
		return err
	}
	if err := dirlock.Check(dir); err != nil {
		return fmt.Errorf("output.dir %q: %w", dir, err)
	}
	return nil
}

// CheckParent reports whether a directory exists. If it does not, the error says why it cannot be created.
func CheckParent(dir string) (exists bool, err error) {
	at := existing(dir)
	if at == dir {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
		}
		return err == nil, err
	}
	probe, err := os.MkdirTemp(at, ".probe-*")
	if err != nil {
		failed, _ := errors.AsType[*fs.PathError](err)
		return false, &fs.PathError{Op: "mkdir", Path: dir, Err: failed.Err} // the name of the probe is of no use
	}
	return false, os.Remove(probe)
}

// existing returns dir, or its nearest parent that exists.
func existing(dir string) string {
	for {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// CheckNames refuses names of output files to which no file could be renamed at the end of the run: names that lead out
// of output.dir, and names of something other than a regular file.
func CheckNames(o configs.Output) error {
	for _, f := range o.Files() {
		if f.Name == configs.Stdout {
			continue
		}
		if err := checkName(f.Name); err != nil {
			return fmt.Errorf("%s: %w inside output.dir", f.Key, err)
		}
		if err := checkTarget(filepath.Join(o.Dir, f.Name)); err != nil {
			return fmt.Errorf("%s %q: %w", f.Key, f.Name, err)
		}
	}
	return nil
}

// checkTarget refuses the path of an output that exists and that the run cannot replace.
func checkTarget(path string) error {
	if err := unfit(path); err != nil {
		return fmt.Errorf("%s exists and %w", path, err)
	}
	return nil
}

// unfit returns an error if path exists and is not what a run would replace there: a regular file, or a Zarr group. The
// error continues a sentence that begins with the path, as in "is no regular file".
func unfit(path string) error {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return nil
	case isZarr(path):
		return unfitGroup(path)
	case !fi.Mode().IsRegular():
		return errors.New("is no regular file")
	}
	return nil
}

// checkSpace fails unless the file system of dir has room for this many more bytes.
func checkSpace(dir string, bytes int64) error {
	available, err := AvailableBytes(dir)
	if err != nil {
		return fmt.Errorf("output.dir %q: %w", dir, err)
	}
	if bytes > available {
		return noSpace(dir, bytes, available)
	}
	return nil
}

// ErrNoSpace says that the outputs of a run do not fit on the disk.
var ErrNoSpace = errors.New("not enough space")

func noSpace(dir string, needed, available int64) error {
	return fmt.Errorf("output.dir %q: %w: %s (%d bytes) needed, %s (%d bytes) available",
		dir, ErrNoSpace, humanize.IBytes(uint64(needed)), needed, humanize.IBytes(uint64(available)), available)
}

// AvailableBytes returns the free space on the file system of dir, or, if dir does not exist, of its nearest parent.
func AvailableBytes(dir string) (int64, error) {
	dir = existing(dir)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space: %w", err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// checkName refuses a name that is not a plain file name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a plain file name", name)
	}
	return nil
}

// Room is the number of bytes to reserve for each file of a run.
type Room struct{ Field, Picture, History, Report, Trace int64 }

// The room for the report and the trace, estimates: they may be longer, and then take more space than was reserved.
const (
	reportBytes     = 32 << 10
	rankReportBytes = 4 << 10
	passTraceBytes  = 2 << 10  // of a rank
	cycleTraceBytes = 32 << 10 // of a rank
)

// maxHistory bounds the room reserved for a history, because few runs reach max_iterations. If a longer history finds
// the disk full, the run gives up the field.
const maxHistory = 1 << 20

// RoomFor returns the room for the files of a run on a mesh with the spacings hx and hy. It fails if the field is too
// large for a file.
func RoomFor(c configs.Config, m solver.Mesh, hx, hy float64, ranks int) (r Room, err error) {
	o, s := c.Output, c.Solver
	if o.Field != "" {
		if r.Field, err = FieldBytes(o, m); err != nil {
			return r, err
		}
		for _, a := range o.Arrays() {
			if !o.OneFile() {
				t := ArrayFormat("", m, hx, hy, a.Mask, o.Float32).DType
				r.Field += int64(m.NY) * int64(m.NX) * int64(t.Size())
			}
		}
	}
	if o.Picture != "" {
		r.Picture = pictureBytes(grid{m.NX, m.NY, hx, hy})
	}
	if o.History != "" {
		line, norms := len(strconv.Itoa(s.MaxIterations))+normBytes, s.MaxIterations/max(1, s.NormEvery)
		r.History = min(int64(len(historyHeader))+int64(line)*int64(min(norms, maxHistory)), maxHistory)
	}
	if o.Report != "" {
		r.Report = reportBytes + int64(ranks)*rankReportBytes
	}
	if o.Trace != "" {
		r.Trace = passTraceBytes
		if s.Entry().Levels {
			r.Trace = cycleTraceBytes
		}
		r.Trace *= int64(ranks) * int64(min(2*c.Trace.Passes, s.MaxIterations))
	}
	return r, nil
}

// Bytes returns the sum.
func (r Room) Bytes() int64 { return r.Field + r.Picture + r.History + r.Report + r.Trace }

// IsFull reports whether err says that a disk is full or a quota exceeded.
func IsFull(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
