package series

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

var mesh = solver.Mesh{NX: 18, NY: 34, DType: solver.Float32}

// numbered is a field whose rows hold their number in every byte.
type numbered struct{}

func (numbered) Row(iy int, dst []byte) error {
	copy(dst, bytes.Repeat([]byte{byte(iy)}, mesh.RowBytes()))
	return nil
}

func (n numbered) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for iy := s.Lo; iy < s.Hi; iy++ {
		_ = n.Row(iy, dst[(iy-s.Lo)*mesh.RowBytes():])
	}
	return nil
}

// full is a place without room.
type full struct{ output.Place }

func (full) Create(string, int64) (output.File, error) { return nil, syscall.ENOSPC }

// record has a run sample a field after the given sweeps, and returns what it logged.
func record(t *testing.T, dir string, change func(*Options), sweeps ...int) (*Series, []string) {
	t.Helper()
	c := configs.Output{Dir: dir, Field: "field.npy", Every: configs.Interval{Sweeps: 10}}
	held, _, err := output.Hold(c, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	comm, err := roster.Join(t.Context(), nil, roster.Member{Identity: roster.Identity{RunID: "test", Size: 1,
		LocalSize: 1}}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer comm.Close()
	core, logs := observer.New(zap.WarnLevel)
	o := Options{Comm: comm, Log: zap.New(core), Output: c, Place: held, Timeout: time.Minute,
		View:   output.View{Mesh: mesh, Stripe: mesh.Interior(), Rows: numbered{}, Initial: numbered{}},
		Format: output.FieldFormat(c, mesh, 1, 1)}
	if change != nil {
		change(&o)
	}
	s := New(o)
	defer s.Close()
	for _, n := range sweeps {
		if err := s.Sample(t.Context(), solver.Sample{Sweeps: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(t.Context(), solver.Result{}); err != nil {
		t.Fatal(err)
	}
	var logged []string
	for _, entry := range logs.All() {
		logged = append(logged, entry.Message)
	}
	return s, logged
}

// Each sample is a whole file. A run that goes on removes what lies beyond its start. Files without room are a single
// warning, and the run goes on.
func TestSeriesOfARankAlone(t *testing.T) {
	dir := t.TempDir()
	s, logged := record(t, dir, nil, 10, 20)
	if r := s.Report(); r.Written != 2 || r.Sweeps != 20 || r.Failed != 0 || logged != nil {
		t.Errorf("report %+v, logged %q", r, logged)
	}
	data, err := os.ReadFile(filepath.Join(dir, "field-000000020.npy"))
	var rows []byte
	for iy := range mesh.NY {
		rows = append(rows, bytes.Repeat([]byte{byte(iy)}, mesh.RowBytes())...)
	}
	if err != nil || !bytes.HasSuffix(data, rows) {
		t.Errorf("%d bytes that do not end with the field (%v)", len(data), err)
	}
	s, logged = record(t, dir, func(o *Options) { o.Start = 10 }, 30)
	if r := s.Report(); r.Written != 1 || r.Sweeps != 30 || logged != nil {
		t.Errorf("after a restart: report %+v, logged %q", r, logged)
	}
	files, err := filepath.Glob(filepath.Join(dir, "field-*.npy"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if want := []string{"field-000000010.npy", "field-000000030.npy"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %q (%v), want %q", files, err, want)
	}
	s, logged = record(t, dir, func(o *Options) { o.Place, o.Start = full{o.Place}, 30 }, 40, 50)
	warned := len(logged) == 1 && logged[0] == "field-000000040.npy is not written, the run goes on: "+s.Report().Error
	if r := s.Report(); r.Written != 0 || r.Failed != 2 || r.Error == "" || !warned {
		t.Errorf("without room: report %+v, logged %q", r, logged)
	}
}
