package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ebitengine/purego"

	"jacobi/cuda/driver"
	"jacobi/cuda/emulate/emulatetest"
	"jacobi/solver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// wide are cases with strips of columns that do not touch the walls, as the suite has none.
var wide = []leveltest.Case{
	{Mesh: solver.Mesh{NX: 700, NY: 120, DType: solver.Float64}, Ranks: 1},
	{Mesh: solver.Mesh{NX: 641, NY: 97, DType: solver.Float64, Walls: solver.WrapRows(true)}, Source: true, Ranks: 1,
		Operator: solver.Operator{Scale: 0.5, Blend: 0.5}},
	{Mesh: solver.Mesh{NX: 550, NY: 130, DType: solver.Float64, Walls: solver.Walls{Left: solver.Neumann,
		Right: solver.Neumann, Bottom: solver.Neumann}}, Operator: solver.Operator{Scale: 0.48, Blend: 0.2}, Ranks: 2},
	{Mesh: solver.Mesh{NX: 602, NY: 140, DType: solver.Float64, Walls: solver.Walls{Left: solver.Periodic,
		Right: solver.Periodic, Top: solver.Neumann}}, Source: true, Magnitude: 100, Ranks: 3,
		Operator: solver.Operator{Scale: 0.5, Blend: 0.875}},
	{Mesh: solver.Mesh{NX: 4000, NY: 9, DType: solver.Float64}, Ranks: 1}, // the coarsest level leaves shared memory
}

// newer opens levels: NewLevels or openStreamed.
type newer func(d *driver.Driver, l multigrid.Layout, o Options) (*Levels, error)

// openStreamed opens levels whose rows stream through blocks, whatever their size.
func openStreamed(d *driver.Driver, l multigrid.Layout, o Options) (*Levels, error) {
	if !l.Plan.Weighted {
		return newLevels(d, l, o, levelsCode(false), slices.DeleteFunc(slices.Clone(smoothShapes),
			func(s smoothShape) bool { return s.rows > 0 }))
	}
	v, err := NewLevels(d, l, o)
	if err != nil {
		return nil, err
	}
	v.weighted.streamed = 1
	for i := 1; i < len(v.levels)-1; i++ {
		if err := v.weighted.prepareCoarser(i); err != nil {
			return nil, errors.Join(err, v.Close())
		}
	}
	return v, nil
}

// checkLevels compares cases with the oracle, and the memory of their devices with LevelsBytes.
func checkLevels(t *testing.T, d *driver.Driver, open newer, o Options, cases []leveltest.Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			err := leveltest.Check(t.Context(), c, func(l multigrid.Layout) (multigrid.Device, error) {
				v, err := open(d, l, o)
				if err == nil && v.Bytes() != LevelsBytes(l) {
					err = fmt.Errorf("%d bytes are used, LevelsBytes is %d", v.Bytes(), LevelsBytes(l))
				}
				return v, err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The device of the multigrid cycles passes the conformance suite, with the machine code for the GPU and with PTX.
func TestLevels(t *testing.T) {
	d := need(t)
	cases := slices.Concat(leveltest.Cases(), wide, leveltest.WeightedCases())
	for _, ptx := range []bool{false, true} {
		for _, f := range []newer{NewLevels, openStreamed} {
			checkLevels(t, d, f, Options{PTX: ptx}, cases)
		}
	}
}

// A level with more rows and columns than fit into one turn of all warps.
func TestLargeLevels(t *testing.T) {
	d := need(t)
	checkLevels(t, d, NewLevels, Options{}, []leveltest.Case{
		{Mesh: solver.Mesh{NX: 4099, NY: 3001, DType: solver.Float64}, Ranks: 1},
		{Mesh: solver.Mesh{NX: 3002, NY: 4100, DType: solver.Float64, Walls: solver.Walls{Left: solver.Periodic,
			Right: solver.Periodic, Bottom: solver.Neumann}}, Source: true, Ranks: 2,
			Operator: solver.Operator{Scale: 0.5, Blend: 0.5}},
	})
}

// emulated returns a driver that runs the kernels, compiled from their source, on the CPU.
func emulated(t *testing.T) *driver.Driver {
	t.Helper()
	if noGPU == nil {
		t.Skip("NOT RUN: this process has the driver of a GPU loaded, on which other tests run the same suites")
	}
	// driver.Open finds the library that is loaded under this name.
	if _, err := purego.Dlopen(emulatetest.Build(t), purego.RTLD_NOW|purego.RTLD_LOCAL); err != nil {
		t.Fatal(err)
	}
	d, err := driver.Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// emulatedAlone is emulated for a test of one goroutine. Short tests, which are those of the race detector, do without
// it.
func emulatedAlone(t *testing.T) *driver.Driver {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN with -short: one goroutine races with nobody")
	}
	return emulated(t)
}

// someWeighted returns every fifth case of weighted operators, from the given one on, and those with several strips of
// columns. Every wall, the directions coarsened and the numbers of ranks are among them.
func someWeighted(first int) (some []leveltest.Case) {
	for i, c := range leveltest.WeightedCases() {
		if i%5 == first || c.Mesh.NX > 900 {
			some = append(some, c)
		}
	}
	return some
}

// The device of the multigrid cycles, with its kernels on the CPU, passes the conformance suite, or some of it, whether
// levels are done in tiles or stream.
func TestLevelsOnFibers(t *testing.T) {
	d := emulatedAlone(t)
	plain := slices.Concat(leveltest.Cases(), wide)
	t.Run("tiles", func(t *testing.T) {
		checkLevels(t, d, NewLevels, Options{}, slices.Concat(plain, someWeighted(0)))
	})
	t.Run("streams", func(t *testing.T) {
		checkLevels(t, d, openStreamed, Options{}, slices.Concat(plain, someWeighted(2)))
	})
}
