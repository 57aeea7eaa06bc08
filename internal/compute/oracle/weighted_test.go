package oracle_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jacobi/internal/compute/oracle"
	"jacobi/solver"
)

// weighted is the number of random problems with materials; ORACLE and ORACLE_SEED say as for TestRandomProblems.
const weighted = 200

// A run of a random problem with materials has the norm of the equations, and a field as near to their solution as that
// says: its error is that of the defect. It is refused if nothing takes up what drives a part of the material, and
// only then. Any number of ranks gives the same field.
func TestRandomMaterials(t *testing.T) {
	t.Parallel()
	first, count := seeds(t, weighted)
	adrift, solved := 0, 0
	for seed := first; seed < first+count; seed++ {
		c := newMaterials(t, seed)
		o, err := run(t, 1, c.keys...)
		e := oracle.NewEquations(c.Problem)
		if why := e.Settle(); why != "" {
			adrift++
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("seed %d: not refused, though %s: %v\n\t%s", seed, why, err, c)
			}
			continue
		}
		if err != nil && c.Mesh.DType == solver.Float32 && strings.Contains(err.Error(), "as rounding loses less") {
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v\n\t%s", seed, err, c)
			continue
		}
		if c.check(t, e, o) {
			solved++
		}
	}
	t.Logf("%d of %d are adrift, %d fields are compared with the solution", adrift, count, solved)
	if seeds := int(count); adrift > seeds/2 || count > 20 && solved < seeds/4 {
		t.Errorf("%d of %d problems are adrift, %d are solved", adrift, count, solved)
	}
}

// newMaterials returns the problem of a seed.
func newMaterials(t *testing.T, seed uint64) trial {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 2)), scale: 1}
	c := trial{r, seed, 1}
	m := &r.Mesh
	m.NX, m.NY, m.DType = 3+r.IntN(30), 3+r.IntN(40), solver.Float64
	if r.chance(0.15) {
		m.DType = solver.Float32
	}
	r.sides()
	r.Width, r.Height = 1, float64(solver.Intervals(m.NY, m.Walls.Top))/float64(solver.Intervals(m.NX, m.Walls.Left))
	if r.chance(0.5) {
		r.Height *= math.Exp(2*r.Float64() - 1)
	}
	for _, k := range []struct {
		key   string
		value any
	}{{"nx", m.NX}, {"ny", m.NY}, {"width", r.Width}, {"height", r.Height}, {"dtype", m.DType}} {
		r.set("grid."+k.key, "%v", k.value)
	}
	source := r.term(30)
	r.Source = r.field(source)
	r.set("problem.source", "%s", source)
	r.Initial = r.field(zero())
	r.Materials = &oracle.Materials{Screening: make([]float64, m.NX*m.NY)}
	r.fix()
	r.transfer()
	r.turn(int(seed % 12))
	dir := t.TempDir()
	r.Materials.Coefficient = r.coefficients()
	r.array("problem.coefficient", filepath.Join(dir, "a.npy"), r.Materials.Coefficient)
	if r.chance(0.3) || !r.grounded() && r.chance(0.7) {
		for i := range r.Materials.Screening {
			if r.chance(0.7) {
				r.Materials.Screening[i] = math.Exp(6 * r.Float64())
			}
		}
		r.array("problem.screening", filepath.Join(dir, "k2.npy"), r.Materials.Screening)
	}
	r.periodic()
	r.set("solver.method", "jacobi")
	r.set("solver.tolerance", "1e-11")
	if m.DType == solver.Float32 {
		r.keys[len(r.keys)-1] = "solver.tolerance=1e-4"
	}
	r.set("solver.max_iterations", "%d", []int{7, 30000}[min(1, r.IntN(6))])
	if r.IntN(5) == 0 {
		c.ranks = 1 + r.IntN(3)
	}
	return c
}

// coefficients returns smooth, rough or constant regions of material, with or without holes.
func (r *random) coefficients() []float64 {
	m := r.Mesh
	a := make([]float64, m.NX*m.NY)
	spread, kind := []float64{0.5, 3, 12}[r.IntN(3)], r.IntN(3)
	x, y := m.NX/3+r.IntN(m.NX), m.NY/3+r.IntN(m.NY)
	for i := range a {
		ix, iy := i%m.NX, i/m.NX
		switch kind {
		case 0:
			a[i] = math.Exp(spread * math.Sin(float64(ix)/5+float64(iy)/7))
		case 1:
			a[i] = math.Exp(spread * (r.Float64() - 0.5))
		default:
			a[i] = 1
			if ix < x != (iy < y) {
				a[i] = math.Exp(spread)
			}
		}
	}
	holes := r.IntN(4)
	for i := range a {
		ix, iy := i%m.NX, i/m.NX
		switch {
		case holes == 1 && r.chance(0.05), holes == 2 && ix > m.NX/2 && iy > m.NY/2,
			holes == 3 && r.IntN(2) == 0 && math.Hypot(float64(ix-m.NX/2), float64(iy-m.NY/2)) < float64(m.NX)/4:
			a[i] = 0
		}
	}
	return a
}

// transfer makes some Neumann walls Robin walls.
func (r *random) transfer() {
	for k, key := range r.keys {
		for i, side := range []string{"left", "right", "top", "bottom"} {
			text, ok := strings.CutPrefix(key, "problem."+side+"=neumann(")
			if !ok || !r.chance(0.5) {
				continue
			}
			h, points := r.IntN(4), r.Mesh.NY
			if i >= 2 {
				points = r.Mesh.NX
			}
			r.Materials.Transfers[i] = make([]float64, points)
			for j := range r.Materials.Transfers[i] {
				r.Materials.Transfers[i][j] = float64(h)
			}
			r.keys[k] = fmt.Sprintf("problem.%s=robin(%d, %s", side, h, text)
		}
	}
}

// turn makes a side with a derivative the axis of a body of revolution.
func (r *random) turn(side int) {
	w := r.Mesh.Walls
	if side >= 4 || []solver.Wall{w.Left, w.Right, w.Top, w.Bottom}[side] != solver.Neumann {
		return
	}
	r.Axis, r.Slopes[side], r.Materials.Transfers[side] = sideNames[side], nil, nil
	r.keys = slices.DeleteFunc(r.keys, func(key string) bool { return strings.HasPrefix(key, "problem."+r.Axis+"=") })
	r.set("grid.axis", "%s", r.Axis)
}

// periodic copies what lies in periodic rows and columns of the arrays.
func (r *random) periodic() {
	m := r.Mesh
	for _, f := range [][]float64{r.Materials.Coefficient, r.Materials.Screening} {
		for iy := range m.NY {
			if m.PeriodicColumns() {
				f[iy*m.NX], f[iy*m.NX+m.NX-1] = f[iy*m.NX+m.NX-2], f[iy*m.NX+1]
			}
		}
		if m.PeriodicRows() {
			copy(f[:m.NX], f[(m.NY-2)*m.NX:])
			copy(f[(m.NY-1)*m.NX:], f[m.NX:2*m.NX])
		}
	}
}

// array writes values to a .npy file and sets a key to it.
func (r *random) array(key, path string, values []float64) {
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", r.Mesh.NY, r.Mesh.NX)
	header += strings.Repeat(" ", 128-10-len(header)-1) + "\n"
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	data = append(data, header...)
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		panic(err)
	}
	r.set(key, "%s", path)
}

// check compares the outcome with the equations. It reports whether it is as good as their solution.
func (c trial) check(t *testing.T, e *oracle.Equations, o outcome) bool {
	fail := func(format string, args ...any) {
		t.Errorf("seed %d: %s\n\t%s", c.seed, fmt.Sprintf(format, args...), c)
	}
	largest := 0.0
	for at, v := range o.field {
		if math.IsNaN(v) || math.IsInf(v, 0) || c.Materials.Coefficient[at] == 0 && c.Fixed == nil && v != 0 {
			fail("%v at point %d", v, at)
			return false
		}
		largest = max(largest, math.Abs(v))
	}
	norm, noise := c.norm(e, o.field)
	// The last norm is that of a sweep before the last one, and sweeps shrink norms but for what contrast adds to them.
	if o.Converged && norm > 10*(o.Tolerance+noise) {
		fail("converged with a norm of %g, that of the equations is %g", *o.Norm, norm)
	}
	c.compareFields(t, o)
	if c.Mesh.DType == solver.Float32 {
		return o.Converged // rounded weights make A so unsymmetric that its factor corrects nothing
	}
	if left, size := e.Remainder(c.Problem, o.field); math.Abs(o.fluxes()-left) > 0x1p-48*size {
		fail("fluxes add up to %g, the defects to %g: more than %g apart", o.fluxes(), left, 0x1p-48*size)
	}
	residual, diagonal := e.Residual(o.field)
	data := make([]float64, len(o.field)) // 0 where sweeps update: its residual is b
	for at, v := range o.field {
		if !e.Free(at) {
			data[at] = v
		}
	}
	right, _ := e.Residual(data)
	if r := o.Residual; math.Abs(r.Norm-residual) > 1e-9*residual+diagonal*noise ||
		right > 0 && math.Abs(*r.Relative-r.Norm/right) > 1e-9**r.Relative {
		fail("residual %+v, want %g of %g", r, residual, right)
	}
	u, err := e.Solve()
	if err != nil {
		t.Logf("seed %d: %v: %s", c.seed, err, c)
		return false
	}
	wrong, err := e.Correction(e.Defect(o.field))
	if err != nil {
		return false
	}
	solution, worst := 0.0, 0.0
	for at := range u {
		if e.Free(at) {
			solution = max(solution, math.Abs(u[at]))
			worst = max(worst, math.Abs(u[at]-o.field[at]-wrong[at]))
		}
	}
	if worst > 1e-6*solution {
		fail("the defect leaves %g of a solution of %g", worst, solution)
	}
	return o.Converged
}

// fluxes returns the sum of all fluxes.
func (o outcome) fluxes() (sum float64) {
	for _, flux := range o.Results.Flux {
		sum += *flux
	}
	for _, r := range o.Results.Regions {
		sum += *r.Flux
	}
	return sum
}

// compareFields runs the trial with several ranks and compares that with the outcome of one.
func (c trial) compareFields(t *testing.T, one outcome) {
	if c.ranks == 1 {
		return
	}
	o, err := run(t, c.ranks, c.keys...)
	switch {
	case err != nil:
		t.Errorf("seed %d: %d ranks: %v\n\t%s", c.seed, c.ranks, err, c)
	case o.FieldHash != one.FieldHash || o.Sweeps != one.Sweeps || *o.Norm != *one.Norm ||
		!reflect.DeepEqual(o.Results, one.Results) || !reflect.DeepEqual(o.Residual, one.Residual):
		t.Errorf("seed %d: %d ranks: field %s after %d sweeps; 1 rank: %s after %d\n\t%s", c.seed, c.ranks,
			o.FieldHash, o.Sweeps, one.FieldHash, one.Sweeps, c)
	}
}
