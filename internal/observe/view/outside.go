package view

import (
	"encoding/json"
	"math"

	"jacobi/configs"
	"jacobi/internal/compute/problem"
)

// maxColumns bounds the rows of a problem, which are read as a whole.
const maxColumns = 1 << 20

// problemOf returns the problem of a report if it is one of a mesh of nx x ny points. Otherwise, or if its files are
// not there, it returns nil: points outside the material then show what the field has, and nothing is outlined.
func problemOf(config json.RawMessage, nx, ny int) *problem.Problem {
	var c struct {
		Grid struct {
			NX, NY int
			DType  string
			Width  float64
			Height any // "auto" or a number
		}
		Problem configs.Problem
	}
	if json.Unmarshal(config, &c) != nil || c.Grid.NX != nx || c.Grid.NY != ny ||
		nx > maxColumns {
		return nil
	}
	cfg := configs.Default()
	cfg.Grid.NX, cfg.Grid.NY, cfg.Grid.DType, cfg.Grid.Width = c.Grid.NX, c.Grid.NY, c.Grid.DType, c.Grid.Width
	cfg.Grid.Height, _ = c.Grid.Height.(float64)
	cfg.Problem = c.Problem
	p, err := problem.New(cfg)
	if err != nil {
		return nil
	}
	return p
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
