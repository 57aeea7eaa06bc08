package view

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"jacobi/configs"
	"jacobi/internal/base/show"
	"jacobi/internal/compute/problem"
	"jacobi/internal/observe/output"
)

// maxColumns bounds the rows of a problem, which are read as a whole.
const maxColumns = 1 << 20

// know opens the problem of a report, which tells which points lie outside the material, and what to outline. The
// error says why that is not known.
func (f *Files) know(ctx context.Context, r *output.Report) error {
	if f.none != nil || r == nil {
		return nil
	}
	p, err := problemOf(ctx, *r)
	if err == nil {
		f.problem = p
	}
	return err
}

// unknown is the warning about an error of know.
func unknown(err error) string {
	return "points outside the material look like others, and nothing is outlined: " + show.Text(err.Error())
}

// problemOf returns the problem of a report; nil if the report has no configuration.
func problemOf(ctx context.Context, r output.Report) (*problem.Problem, error) {
	var c struct {
		Grid struct {
			NX, NY int
			DType  string
			Width  float64
			Height any // "auto" or a number
		}
		Problem configs.Problem
	}
	if err := json.Unmarshal(r.Config, &c); err != nil || c.Grid.NX == 0 {
		return nil, nil
	}
	switch {
	case c.Grid.NX != r.Mesh.NX || c.Grid.NY != r.Mesh.NY:
		return nil, fmt.Errorf("the report has a mesh of %d x %d points and grid.nx %d, grid.ny %d", r.Mesh.NX,
			r.Mesh.NY, c.Grid.NX, c.Grid.NY)
	case c.Grid.NX > maxColumns:
		return nil, fmt.Errorf("grid.nx %d: rows of at most %d points are looked at", c.Grid.NX, maxColumns)
	}
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Grid.DType, cfg.Grid.Width = c.Grid.NX, c.Grid.NY, c.Grid.DType, c.Grid.Width
	cfg.Grid.Height, _ = c.Grid.Height.(float64)
	cfg.Problem = c.Problem
	for _, input := range cfg.Inputs() {
		if info, err := os.Stat(input.Path); err == nil && info.ModTime().After(r.Ended) {
			return nil, fmt.Errorf("%s %q has changed since the run", input.Key, input.Path)
		}
	}
	return problem.New(ctx, cfg)
}

// hide gives values of a frame's row NaN where the points lie outside the material.
func (f *Files) hide(frame *Frame, row int, values []float64) error {
	if f.problem == nil || !f.problem.Porous() {
		return nil
	}
	outside := make([]bool, f.problem.Mesh().NX)
	err := f.problem.OutsideRow(row, outside)
	for i := range values {
		if outside[frame.Column(i)] {
			values[i] = math.NaN()
		}
	}
	return err
}
