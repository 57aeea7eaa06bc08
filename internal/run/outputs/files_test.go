package outputs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// smallOutputs returns outputs of a rank alone, without files.
func smallOutputs(t *testing.T) *Outputs {
	t.Helper()
	c, err := configs.Load(configs.Options{Set: []string{"grid.nx=66", "grid.ny=98", "output.dir=" + t.TempDir()}})
	must(t, err)
	p, err := problem.New(t.Context(), c)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return &Outputs{Options: Options{Config: c, Log: zap.NewNop(), Problem: p, Layout: solver.Layout{Mesh: p.Mesh()}},
		id: roster.Identity{RunID: "run", Size: 1}}
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
