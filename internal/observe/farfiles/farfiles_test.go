package farfiles

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"jacobi/configs"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

const run = "r1"

func serve(t *testing.T, conn Conn) (string, func()) {
	t.Helper()
	dir := t.TempDir()
	held, notes, err := output.Hold(dir, run)
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	names := configs.Output{Field: "field.npy", History: "history.csv", Every: configs.Interval{Sweeps: 10}}
	stop, err := Serve(Options{Conn: conn, RunID: run, Dir: held, Output: names, Log: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		stop()
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return dir, end
}

// eager finds the place, with a short first wait.
func eager(t *testing.T, conn Conn) *Place {
	t.Helper()
	p, err := find(&Place{ctx: t.Context(), conn: conn, runID: run, limit: 30 * time.Second,
		first: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Files that two ranks write by turns are complete, although answers are lost, doubled and late, and no other files are
// left.
func TestFilesArriveWhole(t *testing.T) {
	s := rostertest.Start(t, 100<<10)
	dir, stop := serve(t, rostertest.NewFaulty(wire.Over(s.Dial()), 1, 0.3))
	a, b := eager(t, wire.Over(s.Dial())), eager(t, wire.Over(s.Dial()))
	if a.See(t.TempDir()) || !eager(t, wire.Over(s.Dial())).See(dir) {
		t.Error("the wrong directory is taken for the server's, or the right one is not")
	}
	data := make([]byte, 1<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(data) // never fails
	f, err := a.Create("field.npy", run, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	g := b.Open(f.File())
	half := len(data) / 2
	_, errA := f.WriteAt(data[:half], 0)
	_, errB := g.WriteAt(data[half:], int64(half))
	if err := errors.Join(errA, errB, f.Sync(), g.Sync(), g.Close()); err != nil {
		t.Fatal(err)
	}
	h, err := a.Create("history.csv", run, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"iteration,l2_norm\n", "0,1\n"} {
		if _, err := io.WriteString(h, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "field.npy")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there before it is complete: %v", err)
	}
	lost, err := a.Create("field.npy", run, 0)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{f.File(), h.File()}
	err = errors.Join(lost.Abort(), lost.Abort(), f.Sync(), h.Sync(), a.Commit(files), b.Commit(files))
	err = errors.Join(err, f.Close(), f.Abort())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	got, err := os.ReadFile(filepath.Join(dir, "field.npy"))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes arrived changed, or not all of %d: %v", len(got), len(data), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "history.csv")); err != nil ||
		string(text) != "iteration,l2_norm\n0,1\n" {
		t.Errorf("history %q, %v", text, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

// Ranks can write only the files of the run, each with its own name.
func TestServerRefuses(t *testing.T) {
	s := rostertest.Start(t, 0)
	dir, stop := serve(t, wire.Over(s.Dial()))
	p := eager(t, wire.Over(s.Dial()))
	foreign, err := output.NewPartialName("field.npy", "other")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := output.NewPartialName("field.npy", run)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r    request
		want string
	}{
		{request{Op: opCreate, File: "../.field.npy.r1.x.partial"}, `is not a partial file`},
		{request{Op: opCreate, File: "field.npy"}, `"field.npy" is not a partial file`},
		{request{Op: opCreate, File: foreign}, `is not a partial file of run r1`},
		{request{Op: opCreate, File: ".passwd.r1.x.partial"}, `passwd is no file of this run`},
		{request{Op: opCreate, File: "..r1.x.partial"}, `is not a partial file`},
		{request{Op: opWrite, File: mine}, `no such file`},
		{request{Op: opPut, File: mine}, `field.npy is not in the series of field.npy`},
		{request{Op: opPut, File: ".passwd.r1.x.partial"}, `passwd is no file of this run`},
		{request{Op: opGrow, File: mine}, `field.npy is not the file of the probes`},
		{request{Op: opCommit, Files: []string{".passwd.r1.x.partial"}}, `passwd is no file of this run`},
		{request{Op: opCommit, Files: []string{foreign}}, `is not a partial file of run r1`},
		{request{Op: opCommit, Files: []string{mine}}, `put the outputs in place: `},
		// no space, or too large for the file system
		{request{Op: opCreate, File: mine, Size: 1 << 60}, ` bytes`},
		{request{Op: "read", File: ".field.npy.r1.x.partial"}, `no such file`},
	} {
		if _, err := p.ask(c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.r, err, c.want)
		}
	}
	for _, junk := range [][]byte{nil, {1, 2, 3}, {255, 255, 255, 255, '{'}, {1, 0, 0, 0, '{'}} {
		if _, err := decode(junk); err == nil {
			t.Errorf("%v is a request", junk)
		}
	}
	stop()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("files left: %v, %v", entries, err)
	}
	if _, err := Find(t.Context(), wire.Over(s.Dial()), run, 50*time.Millisecond); err == nil ||
		!strings.HasSuffix(err.Error(), "no answer within 50ms") {
		t.Errorf("nobody serves: error %v", err)
	}
	ended := errors.New("the run has failed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := Find(ctx, wire.Over(s.Dial()), run, time.Minute); !errors.Is(err, ended) {
		t.Errorf("error %v, want %v", err, ended)
	}
}
