// Package rendezvous lets ranks that no launcher started find the server of rank 0: through a file that nobody but
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

	"jacobi/configs"
	"jacobi/internal/regular"
)

// pollInterval is the time between two looks at a file: file systems that nodes share tell nobody of changes.
const pollInterval = 100 * time.Millisecond

// maxFile is far above the size of any rendezvous file.
const maxFile = 64 << 10

// Point is where the ranks of a run meet. It holds secrets.
type Point struct {
	RunID  string       `json:"run_id"`
	Host   string       `json:"host"` // of rank 0
	PID    int          `json:"pid"`
	Server configs.NATS `json:"-"`
}

// file is a Point as it is written, secrets included.
type file struct {
	Point
	Server server `json:"server"`
}

// server is configs.NATS without its habit of hiding secrets.
type server configs.NATS

// Path returns the file of a job in dir; job may be empty.
func Path(dir, job string) string {
	name := ".jacobi-rendezvous"
	if job != "" {
		name += "-" + job
	}
	return filepath.Join(dir, name)
}

// Publish writes p to path, in the place of what is there. remove removes it, unless another run has taken the place.
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
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // with mode 0600
	if err != nil {
		return fail(err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(errors.Join(err, os.Remove(f.Name())))
	}
	return func() error {
		if now, err := Read(path); err != nil || now.RunID != p.RunID {
			return nil
		}
		return os.Remove(path)
	}, nil
}

// Read returns what path holds. It refuses a file that another user may have written or read.
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

// Await reads path again and again until join succeeds with what is there. A file may be left of a run that was killed:
// then join fails, and the next look may find another one. The error, at ctx's end, says what was wrong last.
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
		// What failed because the time is over says less than what failed before.
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

// look reads path. An NFS client believes for a minute that a file is not there, unless its directory is opened.
func look(path string) (Point, error) {
	if dir, err := os.OpenFile(filepath.Dir(path), os.O_RDONLY|syscall.O_DIRECTORY, 0); err == nil {
		_ = dir.Close()
	}
	return Read(path)
}
