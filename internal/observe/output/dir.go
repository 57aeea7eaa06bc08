// Package output writes the files of a run: field, picture, history and report. Each file is staged in a directory of
// the run and put in place when it is complete, so an existing file is only ever replaced by a complete one.
package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/internal/base/dirlock"
	"jacobi/solver"
)

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

// CheckFree is CheckDir for a directory that no run may hold.
func CheckFree(dir string) error {
	if err := CheckDir(dir); err != nil {
		return err
	}
	if err := dirlock.Check(dir); err != nil {
		return fmt.Errorf("output.dir %q: %w", dir, err)
	}
	return nil
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

// AvailableBytes returns the free space on the file system of dir.
func AvailableBytes(dir string) (int64, error) {
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
func RoomFor(o configs.Output, m solver.Mesh, hx, hy float64, ranks int, s configs.Solver) (r Room, err error) {
	if o.Field != "" {
		if r.Field, err = FieldBytes(o, m); err != nil {
			return r, err
		}
		for _, a := range o.Arrays() {
			if !o.OneFile() {
				r.Field += ArrayFormat("", m, hx, hy, a.Mask, o.Float32).rows(m)
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
	return r, nil
}

// TraceRoom returns the room for the trace of a run.
func TraceRoom(c configs.Config, ranks int) int64 {
	if c.Output.Trace == "" {
		return 0
	}
	bytes := int64(passTraceBytes)
	if c.Solver.Entry().Levels {
		bytes = cycleTraceBytes
	}
	return int64(ranks) * int64(min(2*c.Trace.Passes, c.Solver.MaxIterations)) * bytes
}

// Bytes returns the sum.
func (r Room) Bytes() int64 { return r.Field + r.Picture + r.History + r.Report + r.Trace }

// IsFull reports whether err says that a disk is full or a quota exceeded.
func IsFull(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
