package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const partialSuffix = ".partial"

// partial is a file that is written beside its final name and takes it only when it is complete, so that
// an existing file stays until then. Its name, .<name>.<run>.<nonce>.partial, belongs to the run alone.
type partial struct {
	*os.File
	path  string
	final string
}

// createPartial creates the partial of dir/name. It fails if name leaves dir.
func createPartial(dir, name, runID string) (*partial, error) {
	for what, s := range map[string]string{"name": name, "run id": runID} {
		if err := checkName(s); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	path := filepath.Join(dir, "."+name+"."+runID+"."+rand.Text()+partialSuffix)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &partial{File: f, path: path, final: filepath.Join(dir, name)}, nil
}

// commit makes the file durable under its final name. When that fails nothing is left but a file that had
// the final name before.
func (p *partial) commit() error {
	err := p.Sync()
	if e := p.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(p.path, p.final)
	}
	if err != nil {
		os.Remove(p.path)
		return err
	}
	return syncDir(filepath.Dir(p.final))
}

// abort removes the file; after commit, or a second time, it does nothing.
func (p *partial) abort() error {
	if err := p.Close(); errors.Is(err, os.ErrClosed) {
		return nil
	}
	return os.Remove(p.path)
}

// WriteFile writes dir/name in one go: complete, or not at all. What a run that is killed leaves is for RemovePartials.
func WriteFile(dir, name, runID string, data []byte) error {
	p, err := createPartial(dir, name, runID)
	if err != nil {
		return err
	}
	defer p.abort()
	if _, err := p.Write(data); err != nil {
		return err
	}
	return p.commit()
}

// RemovePartials removes what a run that was killed has left in dir.
func RemovePartials(dir, runID string) error {
	if err := checkName(runID); err != nil {
		return fmt.Errorf("remove partial files: run id: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		n := e.Name()
		if strings.HasPrefix(n, ".") && strings.HasSuffix(n, partialSuffix) && strings.Contains(n, "."+runID+".") {
			if removeErr := os.Remove(filepath.Join(dir, n)); err == nil && !errors.Is(removeErr, os.ErrNotExist) {
				err = removeErr
			}
		}
	}
	if err != nil {
		return fmt.Errorf("remove partial files: %w", err)
	}
	return nil
}

// syncDir makes a rename in dir durable, on file systems that know how to.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}

// checkName refuses what is no plain file name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a plain file name", name)
	}
	return nil
}
