// Package output writes the files of a run: field, picture, history and report. Each of them is complete or
// absent: written beside its final name and renamed, so that an existing file is replaced by a complete one
// alone.
package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"jacobi/configs"
)

const probePrefix = ".jacobi-probe-"

// CheckDir creates the output directory if there is none and proves, with a file that it removes again, that
// it can be written.
func CheckDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("output.dir %q: cannot be created: %w", dir, err)
	}
	f, err := os.CreateTemp(dir, probePrefix+"*"+partialSuffix)
	if err != nil {
		return fmt.Errorf("output.dir %q: cannot be written: %w", dir, err)
	}
	err = os.Remove(f.Name())
	if errors.Is(err, fs.ErrNotExist) { // a run that begins there takes it for a leftover
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("output.dir %q: cannot be written: %w", dir, err)
	}
	return nil
}

// CheckNames refuses names of output files that could not be renamed into place at the end of the run, because they
// leave output.dir or something that is no file has them already.
func CheckNames(o configs.Output) error {
	for _, f := range o.Files() {
		if f.Name == configs.Stdout {
			continue
		}
		if err := checkName(f.Name); err != nil {
			return fmt.Errorf("%s: %w inside output.dir", f.Key, err)
		}
		path := filepath.Join(o.Dir, f.Name)
		if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
			return fmt.Errorf("%s %q: %s exists and is no regular file", f.Key, f.Name, path)
		}
	}
	return nil
}

// CheckSpace fails unless the file system of dir has room for so many bytes more.
func CheckSpace(dir string, bytes int64) error {
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

// AvailableBytes returns how much more the file system of dir takes.
func AvailableBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space: %w", err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}
