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

	"jacobi/internal/durable"
	"jacobi/internal/regular"
)

const partialSuffix = ".partial"

// Place is where the files of a run go: a directory (Dir), or one of another machine.
type Place interface {
	// Create begins the file name with room for size bytes; with 0 it grows.
	Create(name, runID string, size int64) (Partial, error)
}

// Partial is a file that is written beside its final name and takes it only when it is complete, so that
// an existing file stays until then.
type Partial interface {
	io.Writer
	io.WriterAt
	// File returns its name in the place, .<name>.<run>.<nonce>.partial, which belongs to the run alone.
	File() string
	// Sync makes what was written durable.
	Sync() error
	Close() error
	// Commit makes the file durable under its final name. When that fails nothing is left but a file that had the final
	// name before.
	Commit() error
	// Abort removes the file; after Commit, or a second time, it does nothing.
	Abort() error
}

// Dir is a directory of this machine.
type Dir string

// Create implements Place. It fails if name leaves the directory.
func (d Dir) Create(name, runID string, size int64) (Partial, error) {
	file, err := NewPartialName(name, runID)
	if err != nil {
		return nil, err
	}
	return d.CreateAs(file, size)
}

// NewPartialName returns a name for the partial of the file name.
func NewPartialName(name, runID string) (string, error) {
	for what, s := range map[string]string{"name": name, "run id": runID} {
		if err := checkName(s); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
	}
	return "." + name + "." + runID + "." + rand.Text() + partialSuffix, nil
}

// NameOfPartial returns the final name of the file whose partial of the run is called file.
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

// CreateAs begins the file whose partial is to be called file, a name of NewPartialName.
func (d Dir) CreateAs(file string, size int64) (Partial, error) {
	f, err := os.OpenFile(filepath.Join(string(d), file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	p := d.partial(f, file)
	if size > 0 {
		if err := reserve(f, string(d), size); err != nil {
			return nil, errors.Join(err, p.Abort())
		}
	}
	return p, nil
}

// Reopen opens a partial that another process has created.
func (d Dir) Reopen(file string) (Partial, error) {
	path := filepath.Join(string(d), file)
	f, err := regular.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return d.partial(f, file), nil
}

func (d Dir) partial(f *os.File, file string) *partial {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(file, "."), partialSuffix), ".")
	final := strings.Join(parts[:max(0, len(parts)-2)], ".") // less run and nonce
	return &partial{file: f, path: filepath.Join(string(d), file), final: filepath.Join(string(d), final)}
}

// partial is a Partial of this machine.
type partial struct {
	file  *os.File
	path  string
	final string
}

func (p *partial) Write(b []byte) (int, error)             { return p.file.Write(b) }
func (p *partial) WriteAt(b []byte, at int64) (int, error) { return p.file.WriteAt(b, at) }
func (p *partial) File() string                            { return filepath.Base(p.path) }
func (p *partial) Sync() error                             { return p.file.Sync() }
func (p *partial) Close() error                            { return p.file.Close() }

func (p *partial) Commit() error {
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
	return durable.SyncDir(filepath.Dir(p.final))
}

func (p *partial) Abort() error {
	if err := p.Close(); errors.Is(err, os.ErrClosed) {
		return nil
	}
	return os.Remove(p.path)
}

// WriteFile writes a file in one go: complete, or not at all. What a run that is killed leaves is for RemovePartials.
func WriteFile(at Place, name, runID string, data []byte) error {
	p, err := at.Create(name, runID, 0)
	if err != nil {
		return err
	}
	defer p.Abort()
	if _, err := p.Write(data); err != nil {
		return err
	}
	return p.Commit()
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

// checkName refuses what is no plain file name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a plain file name", name)
	}
	return nil
}
