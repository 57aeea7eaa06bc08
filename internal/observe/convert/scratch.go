package convert

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/show"
)

// scratch is a hidden directory beside the new file, which is in it until it is complete. Its name is none that a run
// removes. The process holds a lock on it, so that the next conversion to the same name removes what a killed one left.
type scratch struct {
	dir  string
	lock *os.File
}

const scratchMark = ".converting-"

func newScratch(path string) (*scratch, error) {
	parent, prefix := filepath.Dir(path), "."+filepath.Base(path)+scratchMark
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if left, err := lockDir(filepath.Join(parent, e.Name())); err == nil {
			left.close()
		}
	}
	dir, err := os.MkdirTemp(parent, prefix+"*")
	if err != nil {
		return nil, err
	}
	s, err := lockDir(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// lockDir returns the scratch in dir. It fails if another process has it.
func lockDir(dir string) (*scratch, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(errors.New(show.Text(dir)+": another conversion uses it"), f.Close())
	}
	return &scratch{dir, f}, nil // a file system without locks has none to respect
}

// close removes the directory with all that is in it.
func (s *scratch) close() {
	_ = os.RemoveAll(s.dir) // as far as that goes
	_ = s.lock.Close()      // nothing was written
}
