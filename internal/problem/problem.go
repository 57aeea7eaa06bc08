// Package problem turns the grid and problem sections of a run file into the values of the initial field.
//
// Values come from numbers, from expressions in x, y, ix and iy, or, in the interior, from a .npy file. They are
// computed in float64 and rounded once to the field's type. Columns 0 and NX-1 belong to the left and right side in
// every row, corners included. The top and bottom side are columns 1 to NX-2 of rows 0 and NY-1. If they are periodic,
// those columns of row 0 are a copy of row NY-2, and those of row NY-1 a copy of row 1.
package problem

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"jacobi/configs"
	"jacobi/solver"
)

// Problem is the initial field of a run, including its boundary. It implements solver.RowSource and may be used
// concurrently.
type Problem struct {
	mesh solver.Mesh
	name string

	left, right part
	top, bottom part // unused if the mesh is periodic
	initial     part // unused if there is a file
	file        *npyFile
}

// part is one of the expressions of a problem.
type part struct {
	key  string // "problem.left"
	text string
	node node
}

// constant reports whether the part has the same value at all points.
func (p part) constant() bool { return !p.node.onX && !p.node.onY }

// New parses the expressions of cfg and opens the initial file, if there is one. The error has one line per fault with
// the key, its value and the cause. A problem returned with an error has only Mesh and Name. New does not evaluate
// expressions; Check, Row and MaxAbs do.
func New(cfg configs.Config) (*Problem, error) {
	dtype, err := solver.ParseDType(cfg.Grid.DType)
	if err != nil {
		return nil, fmt.Errorf("grid.%w", err)
	}
	if cfg.Grid.NX < 3 || cfg.Grid.NY < 3 {
		return nil, fmt.Errorf("grid.nx %d, grid.ny %d: at least 3 are wanted", cfg.Grid.NX, cfg.Grid.NY)
	}
	def, err := cfg.Problem.Resolve(cfg.Grid.DType)
	if err != nil {
		return nil, err
	}
	p := &Problem{
		mesh: solver.Mesh{NX: cfg.Grid.NX, NY: cfg.Grid.NY, DType: dtype,
			Walls: solver.WrapRows(def.Top == configs.Periodic)},
		name: cfg.Run.Name,
	}
	if p.name == "" {
		p.name = def.Preset
	}
	if p.mesh.PeriodicRows() != (def.Bottom == configs.Periodic) {
		return nil, fmt.Errorf("problem.top %q and problem.bottom %q: both or neither can be periodic", def.Top,
			def.Bottom)
	}

	var faults []error
	parse := func(dst *part, key, text string) {
		n, err := compile(text, p.mesh)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", key, text, err))
		}
		*dst = part{key, text, n}
	}
	parse(&p.left, "problem.left", def.Left)
	parse(&p.right, "problem.right", def.Right)
	if !p.mesh.PeriodicRows() {
		parse(&p.top, "problem.top", def.Top)
		parse(&p.bottom, "problem.bottom", def.Bottom)
	}
	if strings.HasSuffix(strings.ToLower(def.Initial), ".npy") {
		if p.file, err = openNPY(def.Initial, p.mesh); err != nil {
			faults = append(faults, fmt.Errorf("problem.initial %q: %w", def.Initial, err))
		}
		p.initial = part{key: "problem.initial", text: def.Initial}
	} else {
		parse(&p.initial, "problem.initial", def.Initial)
	}
	if len(faults) > 0 {
		err := errors.Join(append(faults, p.Close())...)
		p.file = nil
		return p, err
	}
	return p, nil
}

// Mesh returns the whole grid.
func (p *Problem) Mesh() solver.Mesh { return p.mesh }

// Name returns the title of the run: run.name, or the preset if that is empty.
func (p *Problem) Name() string { return p.name }

// Warnings returns a line for each property of the problem that a user may not expect. None of them prevents a run.
func (p *Problem) Warnings() (lines []string) {
	if p.file == nil {
		return nil
	}
	for _, w := range p.file.warnings() {
		lines = append(lines, fmt.Sprintf("%s %q: %s", p.initial.key, p.initial.text, w))
	}
	return lines
}

// Close closes the initial file.
func (p *Problem) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.close()
}

// round rounds v to the field's type.
func (p *Problem) round(v float64) float64 {
	if p.mesh.DType == solver.Float32 {
		return float64(float32(v))
	}
	return v
}

// finite refuses a value that is not finite in the field's type. v is the value before rounding.
func (p *Problem) finite(q part, iy, ix int, v float64) error {
	if r := p.round(v); !math.IsNaN(r) && !math.IsInf(r, 0) {
		return nil
	}
	cause := fmt.Sprintf("%v; finite values are wanted", v)
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		cause = fmt.Sprintf("%v is too large for %s", v, p.mesh.DType)
	}
	return fmt.Errorf("%s %q at row %d, column %d (x = %g, y = %g): %s", q.key, q.text, iy, ix,
		float64(ix)/float64(p.mesh.NX-1), float64(iy)/float64(p.mesh.NY-1), cause)
}
