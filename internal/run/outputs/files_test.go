package outputs

import (
	"errors"
	"os"
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
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(c)
	if err != nil {
		t.Fatal(err)
	}
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
func (p fullPlace) Create(name, runID string, size int64) (output.Partial, error) {
	if name == p.name {
		return nil, syscall.ENOSPC
	}
	return p.Place.Create(name, runID, size)
}

// If one file cannot be created, those before it are removed.
func TestFilesThatWereCreatedAreRemoved(t *testing.T) {
	o := smallOutputs(t)
	held, _, err := output.Hold(o.Config.Output.Dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	empty, err := os.ReadDir(o.Config.Output.Dir)
	if err != nil {
		t.Fatal(err)
	}
	c := o.Config.Output
	for created, name := range []string{c.History, c.Report, c.Picture, c.Field} {
		var err error
		o.files, err = o.createFiles(fullPlace{held, name})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("no room for %s: %v", name, err)
		}
		with, err := os.ReadDir(c.Dir)
		if err != nil || len(with)-len(empty) != created {
			t.Errorf("no room for %s: %d files are there, want %d before it (%v)", name, len(with)-len(empty), created,
				err)
		}
		o.Abort()
		if left, err := os.ReadDir(c.Dir); err != nil || len(left) != len(empty) {
			t.Errorf("no room for %s: left behind: %v (%v)", name, left, err)
		}
	}
}
