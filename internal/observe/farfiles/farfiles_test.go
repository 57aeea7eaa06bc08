package farfiles

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/internal/observe/output"
)

const run = "r1"

func serve(t *testing.T, conn pubsub.Conn) (string, func()) {
	t.Helper()
	dir := t.TempDir()
	o := configs.Output{Dir: dir, Field: "field.npy", History: "history.csv", Probes: "a=[1,1]",
		Every: configs.Interval{Iterations: 10}}
	held, notes, err := output.Hold(o, run)
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	stop, err := Serve(conn, run, held)
	must(t, err)
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
func eager(t *testing.T, conn pubsub.Conn, dir string) *Place {
	t.Helper()
	p, err := find(&Place{ctx: t.Context(), conn: conn, runID: run, dir: dir, limit: 30 * time.Second,
		first: 5 * time.Millisecond})
	must(t, err)
	return p
}

// Files that two ranks write by turns are complete, although answers are lost, doubled and late, and no other files are
// left. One of the ranks sees the directory.
func TestFilesArriveWhole(t *testing.T) {
	s := rostertest.Start(t, 100<<10)
	dir, stop := serve(t, rostertest.NewFaulty(wire.Over(s.Dial()), 1, rostertest.Lossy(0.3)))
	far, near := eager(t, wire.Over(s.Dial()), t.TempDir()), eager(t, wire.Over(s.Dial()), dir)
	data := make([]byte, 1<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(data) // never fails
	f, err := far.Create("field.npy", int64(len(data)))
	must(t, err)
	host, err := os.Hostname()
	must(t, err)
	half := len(data) / 2
	_, err = f.WriteAt(data[:half], 0)
	for place, want := range map[*Place]string{far: output.WroteNATS + host, near: output.WroteFile} {
		quarter := len(data) / 4
		g, way, opened := place.Open("field.npy")
		if opened != nil || way != want {
			t.Fatalf("the way of the rows is %q, want %q (%v)", way, want, opened)
		}
		at := half
		if place == near {
			at += quarter
		}
		_, written := g.WriteAt(data[at:at+quarter], int64(at))
		err = errors.Join(err, written, g.Sync(), g.Close())
	}
	h, created := near.Create("history.csv", 1<<20)
	must(t, errors.Join(err, created))
	for i, text := range []string{"iteration,l2_norm\n", "0,1\n"} {
		if _, err := h.WriteAt([]byte(text), int64(18*i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "field.npy")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there before it is complete: %v", err)
	}
	lost, err := far.Create("field-000000010.npy", 0)
	must(t, err)
	files := []string{"field.npy", "history.csv"}
	err = errors.Join(lost.Close(), far.Remove("field-000000010.npy"), far.Remove("field-000000010.npy"), f.Sync(),
		h.Sync(), f.Close(), h.Close(), far.Commit(files), near.Commit(files))
	must(t, err)
	for range 2 {
		g, n, err := far.GrowProbes(0)
		if err != nil || n != int64(len(output.ProbesHeader)) {
			t.Fatalf("%d bytes of the file of the probes: %v", n, err)
		}
		if _, err := g.WriteAt([]byte("0,a,1,1,0,0,1\n"), n); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	got, err := os.ReadFile(filepath.Join(dir, "field.npy"))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes arrived changed, or not all of %d: %v", len(got), len(data), err)
	}
	for name, want := range map[string]string{"history.csv": "iteration,l2_norm\n0,1\n",
		"probes.csv": output.ProbesHeader + "0,a,1,1,0,0,1\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("files left: %v, %v", entries, err)
	}
}

// Ranks can write only the files of the run, each with its own name.
func TestServerRefuses(t *testing.T) {
	s := rostertest.Start(t, 0)
	dir, stop := serve(t, wire.Over(s.Dial()))
	p := eager(t, wire.Over(s.Dial()), t.TempDir())
	const foreign = ` is no file of this run`
	for _, c := range []struct {
		r    request
		want string
	}{
		{request{Op: opCreate, File: "../field.npy"}, `"../field.npy"` + foreign},
		{request{Op: opCreate, File: "passwd"}, `"passwd"` + foreign},
		{request{Op: opCreate}, `""` + foreign},
		{request{Op: opWrite, File: "passwd"}, `"passwd"` + foreign},
		{request{Op: opRemove, File: "."}, `"."` + foreign},
		{request{Op: opWrite, File: "field.npy"}, `no such file`},
		{request{Op: opWrite, File: "field.npy", Offset: -1}, `offset -1`},
		{request{Op: opPut, File: "passwd"}, `"passwd"` + foreign},
		{request{Op: opPut, File: "field.npy"}, `put field.npy in place: there is no such file`},
		{request{Op: opCommit, Files: []string{"passwd"}}, `"passwd"` + foreign},
		// no space, or too large for the file system
		{request{Op: opCreate, File: "field.npy", Size: 1 << 60}, ` bytes`},
		{request{Op: "read", File: "field.npy"}, `unknown operation "read"`},
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
	if _, err := Find(t.Context(), wire.Over(s.Dial()), run, dir, 50*time.Millisecond); err == nil ||
		!strings.HasSuffix(err.Error(), "no answer within 50ms") {
		t.Errorf("nobody serves: error %v", err)
	}
	ended := errors.New("the run has failed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := Find(ctx, wire.Over(s.Dial()), run, dir, time.Minute); !errors.Is(err, ended) {
		t.Errorf("error %v, want %v", err, ended)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
