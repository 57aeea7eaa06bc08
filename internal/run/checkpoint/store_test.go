package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"jacobi/internal/net/roster/rostertest"
)

// The leftovers of a killed run are removed, and a set of an earlier start with the same run id is replaced.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".sweep-1-x.unsealed", ".sweep-2-x.removed"} {
		must(t, os.MkdirAll(filepath.Join(dir, name, "sub"), 0o777))
	}
	for range 2 {
		c := newCrew(t, 2, 1, false)
		c.save(c.savers(NewDir(dir), 2), 10)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != setName(10, t.Name()) {
		t.Errorf("%v, %v", entries, err)
	}
	found, faults, err := List(t.Context(), NewDir(dir), "")
	if err != nil || len(faults) > 0 || found[0].Serial != 2 {
		t.Errorf("%+v, %v, %v; want serial 2", found, faults, err)
	}
}

// Another user of a shared directory may have put something else where a file is to be written.
func TestWriteToNothingButARegularFile(t *testing.T) {
	dir := t.TempDir()
	unsealed := NewDir(dir).unsealed("set")
	must(t, os.Mkdir(unsealed, 0o700))
	precious := filepath.Join(dir, "precious")
	err := errors.Join(syscall.Mkfifo(filepath.Join(unsealed, "part-00000"), 0o600),
		os.WriteFile(precious, []byte("precious"), 0o600), os.Symlink(precious, filepath.Join(unsealed, "part-00001")))
	must(t, err)
	for file, kind := range map[string]string{"part-00000": "a named pipe", "part-00001": "a symbolic link"} {
		err := NewDir(dir).Write(t.Context(), "set", file, 1, func(io.Writer) error { t.Error("written"); return nil })
		want := "open " + filepath.Join(unsealed, file) + ": " + kind + ", not a regular file"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
}

// openTestBucket returns a bucket on its own server.
func openTestBucket(t *testing.T) (*Bucket, *rostertest.Server) {
	t.Helper()
	srv := rostertest.StartWith(t, server.Options{JetStream: true, StoreDir: t.TempDir()})
	b, err := OpenBucket(t.Context(), srv.Dial(), "checkpoints")
	must(t, err)
	return b, srv
}

// A bucket works like a directory: another number of ranks resumes, a missing part is named, and removed sets leave
// nothing behind.
func TestBucket(t *testing.T) {
	b, srv := openTestBucket(t)
	first := newCrew(t, 4, 2, true)
	first.save(first.savers(b, 2), 10, 20, 30)
	next := func(ranks int) (*crew, *State, error) {
		c := newCrew(t, ranks, 3, true)
		c.bucket = srv.Dial()
		state, err := c.resume("nats:checkpoints", endless)
		return c, state, err
	}
	_, state, err := next(3)
	if err != nil || state.Start.Iterations != 30 || !slices.Equal(state.Norms, normsTo(30)) {
		t.Fatalf("%+v, %v", state, err)
	}
	newest := setName(30, t.Name())
	must(t, b.objects.Delete(t.Context(), newest+"/part-00002"))
	c, state, err := next(3)
	if err != nil || state.Start.Iterations != 20 {
		t.Fatalf("%+v, %v", state, err)
	}
	if logs := c.logs.All(); len(logs) != 1 || !strings.Contains(logs[0].Message, newest+": rank ") ||
		!strings.Contains(logs[0].Message, "part-00002: file does not exist") {
		t.Errorf("logged %v", logs)
	}
	for _, sweeps := range []int{20, 30} {
		must(t, b.Remove(t.Context(), setName(sweeps, t.Name())))
	}
	if _, _, err := next(2); err == nil || !strings.Contains(err.Error(),
		"go on from nats:checkpoints: there is no checkpoint") {
		t.Error(err)
	}
	// The deletion marker of the part that the test has deleted.
	if info, err := b.stream.Info(t.Context()); err != nil || info.State.Msgs > 1 {
		t.Errorf("%+v, %v: messages are left", info.State, err)
	}
}

// The leftovers of killed runs in a bucket are removed: objects of a set without a manifest, and chunks of an
// incomplete object.
func TestLeftoversInABucketAreRemoved(t *testing.T) {
	b, srv := openTestBucket(t)
	must(t, b.Write(t.Context(), "sweep-1", "part-00000", 9, writes([]byte("some rows"))))
	must(t, srv.Dial().Publish("$O.checkpoints.C.halfwritten", []byte("a piece")))
	failed := b.Write(t.Context(), "sweep-2", "part-00000", 9, func(io.Writer) error { return errors.New("no rows") })
	if failed == nil || !strings.Contains(failed.Error(), "write part-00000: ") ||
		!strings.Contains(failed.Error(), "no rows") {
		t.Error(failed)
	}
	must(t, b.RemoveUnsealed(t.Context()))
	if info, err := b.stream.Info(t.Context()); err != nil || info.State.Msgs != 0 {
		t.Errorf("%+v, %v: messages are left", info.State, err)
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A download stops at the largest size that the object may have.
func TestBucketIsReadWithLimits(t *testing.T) {
	b, _ := openTestBucket(t)
	write := func(file string, size int64) {
		t.Helper()
		err := b.Write(t.Context(), "set", file, size, func(w io.Writer) error {
			_, err := io.CopyN(w, zeros{}, size)
			return err
		})
		must(t, err)
	}
	write("part-00000", 1000)
	f, err := b.Open(t.Context(), "set", Part{File: "part-00000", Bytes: 1000})
	must(t, err)
	if info, err := f.Stat(); err != nil || info.Size() != 1000 || f.Close() != nil {
		t.Errorf("%+v, %v", info, err)
	}
	for _, want := range []int64{999, 1001} {
		_, err := b.Open(t.Context(), "set", Part{File: "part-00000", Bytes: want})
		if text := fmt.Sprintf("1000 bytes, want %d", want); err == nil || err.Error() != text {
			t.Errorf("error %v, want %s", err, text)
		}
	}
	write(manifestFile, maxManifest+1)
	const want = "manifest of more than 67108864 bytes"
	if _, err := b.Manifest(t.Context(), "set"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestBucketRefusals(t *testing.T) {
	const want = `bucket "x": the NATS server has no JetStream: it is started with -js, or checkpoint.dir is used ` +
		`instead`
	if _, err := OpenBucket(t.Context(), rostertest.Start(t, 0).Dial(), "x"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, _, err := Open(t.Context(), "nats:x", nil); err == nil ||
		!strings.HasPrefix(err.Error(), `bucket "x": a rank without a NATS server`) {
		t.Error(err)
	}
}
