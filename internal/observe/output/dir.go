// Package output writes the files of a run: field, picture, history and report. Each file is staged in a directory of
// the run and put in place when it is complete, so an existing file is only ever replaced by a complete one.
package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"jacobi/configs"
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
