// Package rendezvous lets ranks without a launcher find the NATS server that rank 0 starts: through a file that only
// their user can read.
package rendezvous

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"jacobi/configs"
	"jacobi/internal/base/regular"
)

// pollInterval is the time between two reads of the file. Shared file systems do not report the changes of other nodes.
const pollInterval = 100 * time.Millisecond

// maxFile bounds the size of a rendezvous file, in bytes; it is far above what one has.
const maxFile = 64 << 10

// Point says where the ranks of a run meet. It holds secrets.
type Point struct {
	RunID  string       `json:"run_id"`
	Host   string       `json:"host"` // of rank 0
	PID    int          `json:"pid"`
	Server configs.NATS `json:"-"`
}

// file is a Point as it is written, with its secrets.
type file struct {
	Point
	Server server `json:"server"`
}

// server is configs.NATS without the methods that hide its secrets.
type server configs.NATS

// Path returns the path of a job's file in dir; job may be empty.
func Path(dir, job string) string {
	name := ".jacobi-rendezvous"
	if job != "" {
		name += "-" + job
	}
	return filepath.Join(dir, name)
}

// Publish writes p to path and replaces a file that is there. remove removes the file, unless another run has replaced
// it.
func Publish(path string, p Point) (remove func() error, err error) {
	fail := func(err error) (func() error, error) {
		return nil, fmt.Errorf("rendezvous file %s: %w", path, err)
	}
	data, err := json.Marshal(file{p, server(p.Server)})
	if err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fail(err)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o600))
	if err != nil {
		return fail(err)
	}
	if _, err = f.Write(data); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return fail(errors.Join(err, f.Cleanup()))
	}
	return func() error {
		if now, err := Read(path); err != nil || now.RunID != p.RunID {
			return nil
		}
		return os.Remove(path)
	}, nil
}

// Read returns the Point in path. It refuses a file that another user may have written or read.
func Read(path string) (Point, error) {
	fail := func(err error) (Point, error) { return Point{}, fmt.Errorf("rendezvous file %s: %w", path, err) }
	text, err := regular.ReadPrivate(path, maxFile)
	if err != nil {
		return fail(err)
	}
	var data file
	if err := json.Unmarshal(text, &data); err != nil {
		return fail(err)
	}
	data.Point.Server = configs.NATS(data.Server)
	return data.Point, nil
}

// Await reads path repeatedly until join succeeds with its Point. A run that was killed may have left a file: then join
// fails, and a later read may find another file. When ctx ends, Await returns the last error.
func Await(ctx context.Context, path string, join func(context.Context, Point) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last := fmt.Errorf("there is no file %s", path)
	for found := false; ; {
		p, err := look(path)
		if err == nil {
			if err = join(ctx, p); err == nil {
				return nil
			}
			err = fmt.Errorf("%s names rank 0 as process %d on %s: %w", path, p.PID, p.Host, err)
		}
		// An error caused by the end of ctx tells less than an earlier one.
		if !errors.Is(err, fs.ErrNotExist) && (ctx.Err() == nil || !found) {
			last, found = err, true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}

// look reads path. It opens the directory first: an NFS client otherwise believes for a minute that a missing file is
// still missing.
func look(path string) (Point, error) {
	if dir, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|syscall.O_DIRECTORY, 0); err == nil {
		_ = dir.Close()
	}
	return Read(path)
}
