package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/configs"
)

func point(runID string) Point {
	return Point{RunID: runID, Host: "h", PID: 7, Server: configs.NATS{URL: "tls://u:secret@h:1",
		CA: configs.Inline("PEM")}}
}

func TestPublishAndRead(t *testing.T) {
	path := Path(filepath.Join(t.TempDir(), "new"), "slurm-7-0")
	if filepath.Base(path) != ".jacobi-rendezvous-slurm-7-0" {
		t.Errorf("path %s", path)
	}
	remove, err := Publish(path, point("r1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil || got != point("r1") {
		t.Errorf("%#v, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	if _, err := Publish(path, point("r2")); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil { // of the first run
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || got.RunID != "r2" {
		t.Errorf("the file of the second run: %v, %v", got.RunID, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// pipeInPlace replaces a file by a named pipe, at which an ordinary open blocks for ever.
func pipeInPlace(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }

func linkInPlace(path string) error {
	return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
}

func TestReadRefusesWhatOthersMayHaveTouched(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"open to others": {func(p string) error { return os.Chmod(p, 0o640) }, "mode 0640: its owner alone"},
		"of a stranger": {func(p string) error { return os.Chown(p, 12345, -1) },
			"it belongs to user 12345, and this is user "},
		"a link":       {linkInPlace, "a symbolic link, not a regular file"},
		"half":         {func(p string) error { return os.Truncate(p, 20) }, "unexpected end of JSON input"},
		"a flood":      {func(p string) error { return os.Truncate(p, 1<<30) }, "more than 65536 bytes"},
		"a named pipe": {pipeInPlace, "a named pipe, not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := Path(t.TempDir(), "")
			if _, err := Publish(path, point("r1")); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(path); errors.Is(err, os.ErrPermission) {
				t.Skipf("NOT RUN: %s: not root", t.Name())
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := Read(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// Await skips the file of an earlier run, and returns the last error at the end.
func TestAwait(t *testing.T) {
	path := Path(t.TempDir(), "")
	if _, err := Publish(path, point("old")); err != nil {
		t.Fatal(err)
	}
	tried := []string{}
	join := func(_ context.Context, p Point) error {
		tried = append(tried, p.RunID)
		if p.RunID == "new" {
			return nil
		}
		if len(tried) == 2 {
			if _, err := Publish(path, point("new")); err != nil {
				t.Error(err)
			}
		}
		return errors.New("refused")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Await(ctx, path, join); err != nil || fmt.Sprint(tried) != "[old old new]" {
		t.Errorf("error %v after %v", err, tried)
	}

	ctx, cancel = context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	refuse := func(context.Context, Point) error { return errors.New("refused") }
	if err := Await(ctx, path, refuse); err == nil || err.Error() != path+" names rank 0 as process 7 on h: refused" {
		t.Errorf("error %v", err)
	}
	if err := pipeInPlace(path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 3*pollInterval)
	defer cancel()
	want := "rendezvous file " + path + ": open " + path + ": a named pipe, not a regular file"
	if err := Await(ctx, path, refuse); err == nil || err.Error() != want {
		t.Errorf("a pipe there: error %v, want %s", err, want)
	}
	none := path + "-none"
	if err := Await(ctx, none, refuse); err == nil || err.Error() != "there is no file "+none {
		t.Errorf("error %v", err)
	}
	if _, err := Read(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
