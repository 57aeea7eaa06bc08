package outputs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// smallOutputs returns outputs of a rank alone, without files. set has further keys.
func smallOutputs(t *testing.T, set ...string) *Outputs {
	t.Helper()
	set = append([]string{"grid.nx=66", "grid.ny=98", "output.dir=" + t.TempDir()}, set...)
	c, err := configs.Load(configs.Options{Set: set})
	must(t, err)
	p, err := problem.New(t.Context(), c)
	must(t, err)
	comm, err := roster.Join(t.Context(), nil, roster.Member{Identity: roster.Identity{RunID: "test", Size: 1,
		LocalSize: 1}}, time.Minute)
	must(t, err)
	t.Cleanup(func() { _ = p.Close(); comm.Close() })
	m := p.Mesh()
	return &Outputs{id: comm.Self().Identity, Options: Options{Config: c, Log: zap.NewNop(), Comm: comm, Problem: p,
		Timeout: time.Minute, Layout: solver.Layout{Mesh: m, Stripe: m.Interior()},
		OnClose: func(do func() error) { t.Cleanup(func() { _ = do() }) }}}
}

// fullPlace is an output.Place that has no room for one file.
type fullPlace struct {
	output.Place
	name string
}

// Create implements output.Place.
func (p fullPlace) Create(name string, size int64) (output.File, error) {
	if name == p.name {
		return nil, syscall.ENOSPC
	}
	return p.Place.Create(name, size)
}

// If one file cannot be created, those before it are removed.
func TestFilesThatWereCreatedAreRemoved(t *testing.T) {
	o := smallOutputs(t)
	c := o.Config.Output
	held, _, err := output.Hold(c, "other")
	must(t, err)
	defer held.Close()
	stage := filepath.Join(c.Dir, held.Stage())
	empty, err := os.ReadDir(stage)
	must(t, err)
	for created, name := range []string{c.History, c.Report, c.Picture, c.Field} {
		o.place = fullPlace{held, name}
		if err := o.createFiles(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("no room for %s: %v", name, err)
		}
		with, err := os.ReadDir(stage)
		if err != nil || len(with)-len(empty) != created {
			t.Errorf("no room for %s: %d files are there, want %d before it (%v)", name, len(with)-len(empty), created,
				err)
		}
		o.Abort()
		if left, err := os.ReadDir(stage); err != nil || len(left) != len(empty) {
			t.Errorf("no room for %s: left behind: %v (%v)", name, left, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
