package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"jacobi/internal/base/durable"
	"jacobi/internal/base/regular"
)

// Store keeps checkpoints. A checkpoint is a set of files with a manifest; a set without one is not valid. Several
// processes may use one place at the same time, each through its own Store.
type Store interface {
	// Write creates a file of size bytes in an unsealed set. If it returns nil the file is durable; otherwise there is
	// no such file.
	Write(ctx context.Context, set, file string, size int64, write func(io.Writer) error) error
	// Size returns the size of a file in an unsealed set. The error wraps os.ErrNotExist if there is no such file.
	Size(ctx context.Context, set, file string) (int64, error)
	// Seal adds the manifest to a set, which atomically and durably makes the set valid.
	Seal(ctx context.Context, set string, manifest []byte) error
	// Sets returns the names of all sealed sets, in any order.
	Sets(ctx context.Context) ([]string, error)
	// Manifest returns the manifest of a sealed set.
	Manifest(ctx context.Context, set string) ([]byte, error)
	// Open opens the file of a part of a sealed set. A Store that downloads the file refuses one of another size.
	Open(ctx context.Context, set string, p Part) (*os.File, error)
	// Remove removes a set, sealed or not. Removing a set that does not exist is not an error.
	Remove(ctx context.Context, set string) error
	// RemoveUnsealed removes the unsealed sets that killed runs have left. No other run may be using the place.
	RemoveUnsealed(ctx context.Context) error
	// String returns the name of the place for messages.
	String() string
}

const (
	manifestFile   = "manifest.json"
	unsealedSuffix = ".unsealed"
	removedSuffix  = ".removed"
)

// writes returns what writes b, for Store.Write.
func writes(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

// Dir is a Store in a directory that all nodes share. A set is a subdirectory. The name of a set begins with a dot
// until it is sealed and while it is being removed.
type Dir struct{ path string }

// NewDir returns the store in the directory at path. The first write creates the directory.
func NewDir(path string) *Dir { return &Dir{path} }

// String returns the path.
func (d *Dir) String() string { return d.path }

func (d *Dir) unsealed(set string) string { return filepath.Join(d.path, "."+set+unsealedSuffix) }

// Write implements Store.
func (d *Dir) Write(ctx context.Context, set, file string, size int64, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(d.unsealed(set), 0o777); err != nil {
		return err
	}
	path := filepath.Join(d.unsealed(set), file)
	f, err := regular.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(path))
		}
	}()
	if err := reserve(f, size); err != nil {
		return err
	}
	if err := write(contextWriter{ctx, f}); err != nil {
		return err
	}
	return f.Sync()
}

// reserve allocates size bytes for f, so that a full disk is detected before the write. It does nothing on a file
// system that cannot reserve space.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// contextWriter is a writer that fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}

// Size implements Store.
func (d *Dir) Size(_ context.Context, set, file string) (int64, error) {
	fi, err := os.Stat(filepath.Join(d.unsealed(set), file))
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// Seal implements Store.
func (d *Dir) Seal(ctx context.Context, set string, manifest []byte) error {
	if err := d.Write(ctx, set, manifestFile, int64(len(manifest)), writes(manifest)); err != nil {
		return err
	}
	if err := durable.SyncDir(d.unsealed(set)); err != nil {
		return err
	}
	sealed := filepath.Join(d.path, set)
	err := os.Rename(d.unsealed(set), sealed)
	if errors.Is(err, os.ErrExist) { // an earlier start with the same run id has sealed the same state
		if err = d.removeSealed(set); err == nil {
			err = os.Rename(d.unsealed(set), sealed)
		}
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(d.path)
}

// Sets implements Store.
func (d *Dir) Sets(context.Context) ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sets []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() {
			continue
		}
		if _, err := os.Stat(filepath.Join(d.path, e.Name(), manifestFile)); err == nil {
			sets = append(sets, e.Name())
		}
	}
	return sets, nil
}

// Manifest implements Store.
func (d *Dir) Manifest(_ context.Context, set string) ([]byte, error) {
	return regular.ReadFile(filepath.Join(d.path, set, manifestFile), maxManifest)
}

// Open implements Store.
func (d *Dir) Open(_ context.Context, set string, p Part) (*os.File, error) {
	return regular.Open(filepath.Join(d.path, set, p.File))
}

// Remove implements Store.
func (d *Dir) Remove(_ context.Context, set string) error {
	return errors.Join(d.removeSealed(set), os.RemoveAll(d.unsealed(set)))
}

func (d *Dir) removeSealed(set string) error {
	removed := filepath.Join(d.path, "."+set+removedSuffix)
	// The rename comes first, so that a partly removed set does not look complete.
	if err := os.Rename(filepath.Join(d.path, set), removed); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(removed)
}

// RemoveUnsealed implements Store.
func (d *Dir) RemoveUnsealed(context.Context) error {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, ".") &&
			(strings.HasSuffix(n, unsealedSuffix) || strings.HasSuffix(n, removedSuffix)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, n)))
		}
	}
	return err
}
