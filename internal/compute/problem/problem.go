// Package problem turns the grid and problem sections of a run file into the initial field and the operator of a run.
//
// Values come from numbers, from expressions in x, y, ix and iy, or from .npy files. They are computed in float64 and
// rounded once to the field's type. The columns of fixed left and right walls belong to these walls in every row,
// corners included. The rows of fixed top and bottom walls are the other columns of rows 0 and NY-1. The rows and
// columns of Neumann walls begin with problem.initial, and those of periodic walls are copies (see solver.Mesh).
package problem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"jacobi/configs"
	"jacobi/solver"
)

// Problem is the initial field of a run, including its boundary, and the operator of its sweeps. It implements
// solver.RowSource, solver.ValueRows and solver.FixedRows and may be used concurrently.
type Problem struct {
	mesh solver.Mesh
	name string

	sides   [4]side
	initial part
	source  part    // the right-hand side f
	turn    turn    // around grid.axis
	numbers numbers // without screening if points have weights of their own
	materials
	fixed   fixedPoints
	islands *Islands  // nil before TakeIslands, and without any
	loose   bool      // see weigh
	taken   *Surplus  // nil before TakeOff, and where nothing is
	patches [][]patch // of islands, by row
	drawing *drawing  // nil without one
	regions regions
	found   []float64 // the values of the regions that float, in their order; nil before they are known
	cells   int64     // bytes of arrays of cells
	faulty  bool      // New returned an error
	worked  func()    // see OnWork
	config  configs.Config
}

// part is one of the inputs of a problem: an expression or a file.
type part struct {
	key  string // "problem.left"
	text string
	node node
	file *npyFile // nil for an expression
	read *blocks  // of a file whose values are in memory, of a side or of cells; nil for others
}

// constant reports whether the part has the same value at all points.
func (p part) constant() bool { return p.file == nil && !p.node.onX && !p.node.onY }

// zero reports whether the part is the number 0 at all points.
func (p part) zero() bool { return p.constant() && p.node.at(&span{}, 0, 0) == 0 }

// New parses the expressions of cfg and opens its files. The error has one line per fault with the key, its value and
// the cause. A problem returned with an error has only Mesh and Name, and a plain operator. New does not evaluate
// expressions that depend on a point; Check, Row, ValueRow, FixedRow and MaxGuess do. It stops when ctx ends.
func New(ctx context.Context, cfg configs.Config) (*Problem, error) {
	return Valued(ctx, cfg, nil)
}

// Valued is New with the values of the regions that float, in their order; nil before they are found.
func Valued(ctx context.Context, cfg configs.Config, values []float64) (*Problem, error) {
	return newProblem(ctx, cfg, pictures{}, values)
}

// Again is New with the configuration of p, which may be closed. It takes the pictures from p instead of their files.
func (p *Problem) Again(ctx context.Context) (*Problem, error) {
	return newProblem(ctx, p.config, pictures{p.drawing, p.fixed.picture}, p.found)
}

// pictures are those that were read; nil if they were not.
type pictures struct {
	drawing *drawing
	fixed   *picture
}

func newProblem(ctx context.Context, cfg configs.Config, read pictures, values []float64) (*Problem, error) {
	dtype, err := solver.ParseDType(cfg.Grid.DType)
	if err != nil {
		return nil, fmt.Errorf("grid.%w", err)
	}
	if cfg.Grid.NX < 3 || cfg.Grid.NY < 3 {
		return nil, fmt.Errorf("grid.nx %d, grid.ny %d: must be at least 3", cfg.Grid.NX, cfg.Grid.NY)
	}
	def, err := cfg.Problem.Resolve(cfg.Grid.DType)
	if err != nil {
		return nil, err
	}
	walls, err := cfg.Problem.Walls(cfg.Grid.DType)
	if err = cmp.Or(cfg.CheckAxis(), err); err != nil {
		return nil, err
	}
	p := &Problem{mesh: solver.Mesh{NX: cfg.Grid.NX, NY: cfg.Grid.NY, DType: dtype, Walls: walls}, name: cfg.Run.Name,
		config: cfg, worked: func() {}, found: values}
	if p.name == "" {
		p.name = def.Title()
	}
	var faults []error
	if p.numbers, err = newNumbers(p.mesh, cfg.Grid, 0); err != nil {
		faults = append(faults, err)
	}
	p.turn = newTurn(cfg.Grid.Axis, p.mesh, p.numbers)
	faults = append(faults, p.open(ctx, def, cfg.Problem.Coefficient != "", read)...)
	if len(faults) == 0 {
		if err := cmp.Or(p.weigh(cfg.Grid), p.checkFloating()); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		err := errors.Join(append(faults, p.Close())...)
		for _, q := range p.readable() {
			q.file = nil
		}
		p.faulty, p.weighted = true, false
		return p, err
	}
	return p, nil
}

// open parses the expressions of def and opens its files, but for pictures that were read. named says that the run
// names problem.coefficient.
func (p *Problem) open(ctx context.Context, def configs.Problem, named bool, read pictures) (faults []error) {
	fault := func(key, text string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %q: %w", key, text, def.Missing(err)))
		}
	}
	for k, text := range [4]string{def.Left, def.Right, def.Top, def.Bottom} {
		side := &p.sides[k]
		side.part = part{key: "problem." + sideNames[k], text: text}
		s, err := configs.ParseSide(text)
		side.wall = s.Wall
		switch {
		case err != nil || s.Wall == solver.Periodic:
		case s.Wall == solver.Dirichlet && configs.IsArray(s.Text):
			err = p.openSide(&side.part, k < north)
		default:
			side.node, err = p.number(s.Text, sidesTake)
		}
		if err == nil && s.Transfer != "" {
			side.transfer = part{key: side.key, text: text}
			side.transfer.node, err = p.number(s.Transfer, sidesTake)
		}
		fault(side.key, text, err)
	}
	for _, input := range []struct {
		part      *part
		key, text string
	}{{&p.initial, "problem.initial", def.Initial}, {&p.source, "problem.source", def.Source},
		{&p.coefficient, "problem.coefficient", def.Coefficient},
		{&p.screening, "problem.screening", def.Screening}} {
		*input.part = part{key: input.key, text: input.text}
		var err error
		switch {
		case !configs.IsArray(input.text):
			input.part.node, err = p.number(input.text, valuesTake)
		case input.part == &p.initial:
			input.part.file, err = openNPY(input.text, p.mesh, false, p.sized(bothKeys))
		default:
			err = p.openArray(input.part, false)
		}
		fault(input.key, input.text, err)
	}
	var err error
	p.fixed, err = p.openFixed(ctx, def.Fixed, read.fixed)
	fault("problem.fixed", def.Fixed, err)
	for _, err := range []error{p.draw(ctx, def, named, read.drawing), p.nameRegions(def)} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// openSide reads the values of a side from its file.
func (p *Problem) openSide(side *part, vertical bool) error {
	key, points := "grid.nx", p.mesh.NX
	if vertical {
		key, points = "grid.ny", p.mesh.NY
	}
	values, line, err := openLine(side.text, p.sized(key), points)
	if err != nil {
		return err
	}
	side.read, side.node = line, node{onX: !vertical, onY: vertical, eval: func(s *span, dst []float64) {
		if vertical {
			dst[0] = values[s.row]
		} else {
			copy(dst, values[s.col:])
		}
	}}
	return nil
}

// draw opens the drawing, or takes the one that was read. Its fixed points take the place of those of problem.fixed,
// and their values that of problem.initial.
func (p *Problem) draw(ctx context.Context, def configs.Problem, named bool, read *drawing) (err error) {
	if p.drawing = read; read == nil {
		p.drawing, err = openDrawing(ctx, def, p.mesh)
	}
	if err != nil || p.drawing == nil {
		return err
	}
	switch {
	case def.Fixed != NoFixed:
		return fmt.Errorf("problem.fixed %q: problem.drawing says which points are fixed; name one of the two",
			def.Fixed)
	case p.initial.file != nil:
		return fmt.Errorf("problem.initial %q: beside problem.drawing it must be a number or an "+
			"expression", def.Initial)
	case p.initial.node.eval == nil:
		return nil // its error is reported
	}
	found := finder(p.found)
	for i := range p.drawing.colours {
		c := &p.drawing.colours[i]
		found(c.Floating, &c.Value)
	}
	if err := p.holds("problem.colours", p.drawing.regions()); err != nil {
		return err
	}
	if p.drawing.hasCoefficients() {
		if named {
			return fmt.Errorf("problem.coefficient %q: colours of problem.drawing have coefficients; name them in one "+
				"of the two", def.Coefficient)
		}
		p.coefficient = part{key: "problem.drawing", text: def.Drawing, node: p.drawing.coefficients()}
	}
	p.fixed = fixedPoints{part: part{key: "problem.drawing", text: def.Drawing, node: p.drawing.fixed()}}
	p.initial.node = p.drawing.over(p.initial.node)
	p.regions.list = p.drawing.regions()
	return nil
}

// number compiles an expression that yields a number. allowed is what its key takes.
func (p *Problem) number(text, allowed string) (node, error) {
	return compileNumber(text, p.mesh, p.numbers.width, p.numbers.height, allowed)
}

// OnWork has worked called after each step of working out values, which is some of a row at most, by several goroutines
// at once. It is called before the problem is used.
func (p *Problem) OnWork(worked func()) { p.worked = worked }

// Mesh returns the whole grid.
func (p *Problem) Mesh() solver.Mesh { return p.mesh }

// Name returns the title of the run: run.name, or the preset if that is empty.
func (p *Problem) Name() string { return p.name }

// PictureBytes returns the memory that the problem takes for arrays of cells, and while its picture is read; 0 without.
func (p *Problem) PictureBytes() (bytes int64) {
	bytes = p.cells
	if p.drawing != nil {
		bytes += p.drawing.bytes
	}
	if p.fixed.picture != nil {
		bytes += p.fixed.picture.bytes
	}
	return bytes
}

// Warnings returns a line for each property of the problem that a user may not expect. None of them prevents a run. It
// looks no further when ctx ends.
func (p *Problem) Warnings(ctx context.Context) (lines []string) {
	for _, q := range p.readable() {
		if q.file == nil || q == &p.fixed.part {
			continue
		}
		for _, w := range q.file.warnings() {
			lines = append(lines, fmt.Sprintf("%s %q: %s", q.key, q.text, w))
		}
	}
	if p.drawing != nil {
		lines = append(lines, p.drawing.warnings()...)
	}
	lines = append(lines, p.untouched(ctx).warnings(p)...)
	if line := p.unknown(ctx); line != "" {
		lines = append(lines, line)
	}
	return append(lines, p.sideWarnings()...)
}

// Close closes the files.
func (p *Problem) Close() error {
	var errs []error
	for _, q := range p.readable() {
		if q.file != nil {
			errs = append(errs, q.file.close())
		}
	}
	return errors.Join(errs...)
}

// Bound says which input belongs to the points of this mesh, so that the problem has no other mesh; "" if none does. An
// initial field that gives no point its value does not count.
func (p *Problem) Bound() string {
	var parts []*part
	for k := range p.sides {
		parts = append(parts, &p.sides[k].part, &p.sides[k].transfer)
	}
	parts = append(parts, p.readable()[1:]...)
	if p.InitialHolds() {
		parts = append(parts, &p.initial)
	}
	for _, q := range parts {
		switch {
		case q.file != nil || q.read != nil:
			return fmt.Sprintf("%s %q is an array on this mesh", q.key, q.text)
		case q.node.indexed:
			return fmt.Sprintf("%s %q counts points", q.key, q.text)
		}
	}
	return ""
}

// InitialHolds reports whether points keep values of problem.initial.
func (p *Problem) InitialHolds() bool { return !p.fixed.none() }

// readable returns the parts that may be arrays in files, problem.initial first.
func (p *Problem) readable() []*part {
	return []*part{&p.initial, &p.source, &p.fixed.part, &p.coefficient, &p.screening}
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
	cause := fmt.Sprintf("%v; values must be finite", v)
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		cause = fmt.Sprintf("%v is too large for %s", v, p.mesh.DType)
	}
	return p.refuse(q, iy, ix, cause)
}
