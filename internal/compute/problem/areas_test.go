package problem

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"jacobi/configs"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// solve returns the solution of the equations of a weighted problem without periodic sides, by Gaussian elimination in
// a band, and its results.
func solve(t testing.TB, p *Problem) (u []float64, r results.Results) {
	t.Helper()
	m := p.Mesh()
	nx, n := m.NX, m.NX*m.NY
	whole, err := p.Maxima(t.Context(), 0, m.NY)
	if err != nil {
		t.Fatal(err)
	}
	p.SetMaxima(whole)
	width := 2*nx + 1
	band, u := make([]float64, n*width), make([]float64, n)
	row, fixed := make([]byte, m.RowBytes()), make([]bool, nx)
	value := func(k solver.Value, iy int) []float64 {
		dst := make([]float64, nx)
		if err := p.ValueRow(iy, k, row); err != nil {
			t.Fatal(err)
		}
		m.DType.Decode(dst, row)
		return dst
	}
	interior := m.Interior()
	lo, hi := m.InteriorColumns()
	for iy := range m.NY {
		if err := p.Row(iy, row); err != nil {
			t.Fatal(err)
		}
		m.DType.Decode(u[iy*nx:][:nx], row)
		if err := p.FixedRow(iy, fixed); err != nil {
			t.Fatal(err)
		}
		var weights [4][]float64
		for k := range weights {
			weights[k] = value(solver.West+solver.Value(k), iy)
		}
		b := value(solver.Source, iy)
		for ix := range nx {
			i := iy*nx + ix
			band[i*width+nx] = 1
			if fixed[ix] || iy < interior.Lo || iy >= interior.Hi || ix < lo || ix >= hi {
				continue
			}
			u[i] = b[ix]
			for k, step := range []int{-1, 1, -nx, nx} {
				if k < 2 && (ix+step < 0 || ix+step >= nx) || k >= 2 && (i+step < 0 || i+step >= n) {
					step = -step // beyond a Neumann wall
				}
				band[i*width+nx+step] -= weights[k][ix]
			}
		}
	}
	for i := range n {
		for j := i + 1; j < min(n, i+nx+1); j++ {
			f := band[j*width+nx+i-j] / band[i*width+nx]
			if f == 0 {
				continue
			}
			for k := i; k < min(n, i+nx+1); k++ {
				band[j*width+nx+k-j] -= f * band[i*width+nx+k-i]
			}
			u[j] -= f * u[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < min(n, i+nx+1); k++ {
			u[i] -= band[i*width+nx+k-i] * u[k]
		}
		u[i] /= band[i*width+nx]
	}
	stripe := m.Interior()
	tally := results.New(p, stripe)
	rows := results.NewRows(p, stripe, tally)
	field := make([]byte, n*m.DType.Size())
	m.DType.Encode(field, u)
	if err := rows.AddRows(stripe.Lo, field[stripe.Lo*m.RowBytes():stripe.Hi*m.RowBytes()]); err != nil {
		t.Fatal(err)
	}
	if err := rows.End(nil); err != nil {
		t.Fatal(err)
	}
	if r, err = results.Merge(p, []results.Part{tally.Part()}); err != nil {
		t.Fatal(err)
	}
	return u, r
}

// farthest returns the largest distance of a field to a function of the plane.
func distance(p *Problem, u []float64, f func(x, y float64) float64) (most float64) {
	nx := p.mesh.NX
	for i, v := range u {
		x, y := float64(i%nx)/float64(nx-1), float64(i/nx)/float64(p.mesh.NY-1)
		most = max(most, math.Abs(v-f(x, y)))
	}
	return most
}

// Layers conduct exactly, wherever their interfaces lie: across the flow as their resistances in series, along it side
// by side.
func TestLayersAreExact(t *testing.T) {
	const a, b = 3.0, 0.01
	for _, at := range []float64{0.5, 0.3137, 0.0001, 0.99, 1.0 / 3, 0.5 + 1.0/32} {
		for axis, one := range map[string]configs.Problem{
			"x": {Left: "neumann(0)", Right: "neumann(0)", Top: "1", Bottom: "0"},
			"y": {Top: "1", Bottom: "0", Left: "neumann(0)", Right: "neumann(0)"},
		} {
			one.Coefficient = fmt.Sprintf("%s < %v ? %v : %v", axis, at, a, b)
			want := a*at + b*(1-at)
			if axis == "y" {
				want = 1 / (at/a + (1-at)/b)
			}
			_, r := solve(t, open(t, config(17, 17, "float64", one)))
			top, bottom := *r.Flux["top"], *r.Flux["bottom"]
			if math.Abs(top/want-1) > 1e-9 || math.Abs(bottom/want+1) > 1e-9 || math.Abs(2**r.Energy/want-1) > 1e-9 {
				t.Errorf("interface at %s = %v: flux %v and %v, energy %v, want %v", axis, at, top, bottom, *r.Energy,
					want)
			}
		}
	}
}

// Layers of several materials conduct exactly, too: between any two of them lies an interface.
func TestSeveralLayersAreExact(t *testing.T) {
	for text, want := range map[string]float64{
		"y < 0.3137 ? 1 : y < 0.7071 ? 10 : 100":   1 / (0.3137 + 0.3934/10 + 0.2929/100),
		"y > 0.3137 ? (y > 0.7071 ? 100 : 10) : 1": 1 / (0.3137 + 0.3934/10 + 0.2929/100),
		"y < 0.2 ? 5 : y < 0.41 ? 0.2 : y < 0.42 ? 0.01 : y < 0.77 ? 1 : 7": 1 / (0.2/5 + 0.21/0.2 + 1 + 0.35 +
			0.23/7),
		"x < 0.3137 ? 1 : x < 0.7071 ? 10 : 100":           0.3137 + 3.934 + 29.29,
		"floor(3*y) == 0 ? 1 : floor(3*y) == 1 ? 10 : 100": 3 / (1 + 0.1 + 0.01),
	} {
		_, r := solve(t, open(t, config(17, 17, "float64", configs.Problem{Top: "1", Left: "neumann(0)",
			Right: "neumann(0)", Coefficient: text})))
		if flux := *r.Flux["top"]; math.Abs(flux/want-1) > 1e-9 {
			t.Errorf("%s: flux %v, want %v", text, flux, want)
		}
	}
}

// A thin layer counts wherever it lies, and no more than it is thick.
func TestThinLayers(t *testing.T) {
	for _, thick := range []float64{2e-3, 1e-3, 2e-4, 1e-5} { // a spacing is 1/16
		for _, at := range []float64{0.5, 0.5137, 0.515, 0.52, 1.0 / 3} {
			for axis, sides := range map[string]configs.Problem{
				"x": {Left: "1", Top: "neumann(0)", Bottom: "neumann(0)"},
				"y": {Top: "1", Left: "neumann(0)", Right: "neumann(0)"},
			} {
				across, along := sides, sides
				across.Coefficient = fmt.Sprintf("abs(%s - %v) < %v ? %v : 1", axis, at, thick/2, thick)
				along.Source = fmt.Sprintf("abs(%s - %v) < %v ? %v : 0", axis, at, thick/2, 1/thick)
				along.Screening = "0*x"
				_, r := solve(t, open(t, config(17, 17, "float64", across)))
				most, want := 0.0, 1/(2-thick)
				for _, flux := range r.Flux {
					most = max(most, *flux)
				}
				if math.Abs(most/want-1) > 1e-6 {
					t.Errorf("%s: flux %v, want %v", across.Coefficient, most, want)
				}
				_, r = solve(t, open(t, config(17, 17, "float64", along)))
				out := 0.0
				for _, flux := range r.Flux {
					out -= *flux
				}
				if math.Abs(out-1) > 1e-4 {
					t.Errorf("%s: %v flows out, want 1", along.Source, out)
				}
			}
		}
	}
}

// What a source makes is the area times its density, wherever its edges lie, and all of it leaves again.
func TestSourcesHaveTheirArea(t *testing.T) {
	for text, want := range map[string]float64{
		"abs(x-0.5) <= 0.2 and abs(y-0.5) <= 0.2 ? 50 : 0":    8,
		"abs(x-0.4137) < 0.2011 and abs(y-0.5) < 0.1 ? 2 : 0": 2 * 0.4022 * 0.2,
		"hypot(x-0.5, y-0.5) < 0.3 ? 1 : 0":                   math.Pi * 0.09,
		"x < 0.25 ? 1 : 0":                                    0.25,
		"y > 0.731 ? 1 : 3":                                   0.269 + 3*0.731,
		"max(abs(x-0.51), abs(y-0.52)) < 0.01 ? 1e4 : 0":      4, // less than a spacing wide
	} {
		_, r := solve(t, open(t, config(33, 33, "float64", configs.Problem{Top: "0", Source: text, Screening: "0*x"})))
		out := -(*r.Flux["left"] + *r.Flux["right"] + *r.Flux["top"] + *r.Flux["bottom"])
		if math.Abs(out/want-1) > 1e-3 || text[0] != 'h' && math.Abs(out/want-1) > 1e-9 {
			t.Errorf("%s: %v flows out, want %v", text, out, want)
		}
		b := r.Balance
		if math.Abs(*b.Source-out) > 1e-10 || math.Abs(*b.Out/out-1) > 1e-12 || math.Abs(*b.Remainder) > 1e-10 {
			t.Errorf("%s: source %v, out %v, remainder %v; want %v, all of it, nothing", text, *b.Source, *b.Out,
				*b.Remainder, out)
		}
	}
}

// Water seeps from one half of a side to the other, below a sheet pile without conductance: the flux of the side is 0,
// and its inflow, at the value 2 against 0, is the energy.
func TestASideLetsInAndOut(t *testing.T) {
	_, r := solve(t, open(t, config(65, 33, "float64", configs.Problem{Top: "x < 0.5 ? 2 : 0", Left: "neumann(0)",
		Right: "neumann(0)", Bottom: "neumann(0)", Coefficient: "abs(x-0.5) < 0.02 and y < 0.6 ? 0 : 3e-7"})))
	side, in := r.Balance.Sides["top"], *r.Energy
	if in < 1e-7 || math.Abs(*side.In/in-1) > 1e-9 || math.Abs(*side.Out/in-1) > 1e-9 || *r.Balance.In != *side.In ||
		math.Abs(*r.Flux["top"]) > 1e-9*in || math.Abs(*r.Balance.Remainder) > 1e-9*in {
		t.Errorf("%v, flux %v, want %v in and out", r.Balance, *r.Flux["top"], in)
	}
	if text := fmt.Sprintf(" (in %.10g, out %.10g)", *side.In, *side.Out); !strings.Contains(r.Lines()[2][1], text) {
		t.Errorf("summary %q, want %q in it", r.Lines()[2][1], text)
	}
}

// With a source, a screening that differs, edges of areas and sides of all kinds, nothing remains at the solution. What
// a side lets in is that of its free part.
func TestBalance(t *testing.T) {
	for _, c := range []configs.Problem{
		{Top: "neumann(1)", Left: "neumann(0)", Fixed: "x < 0.3123", Source: "9*sin(9*x)", Screening: "2+x"},
		{Top: "neumann(1)", Left: "neumann(0)", Fixed: "ix < 10", Source: "9*sin(9*x)", Screening: "2+x"},
		{Left: "neumann(-y)", Bottom: "robin(2, 3*x)", Top: "x", Right: "-1", Source: "x < y ? 4 : -3", Initial: "x",
			Screening: "x > 0.41 ? 5 : 0", Fixed: "hypot(x-0.5, y-0.3) < 0.2", Coefficient: "y > 0.77 ? 100 : 1+x"},
		{Top: "robin(1, 1)", Bottom: "neumann(x)", Source: "y", Coefficient: "x > 0.6 and y > 0.5 ? 0 : 2"},
	} {
		_, r := solve(t, open(t, config(33, 33, "float64", c)))
		if b := r.Balance; *b.In < 0.01 || math.Abs(*b.Remainder) > 1e-11**b.In ||
			math.Abs(*b.In-*b.Out-*b.Remainder) > 1e-14**b.In {
			t.Errorf("%+v: %v", c, b)
		}
		if in := *r.Flux["top"]; c.Fixed == "x < 0.3123" && math.Abs(in-(1-0.3123)) > 1e-12 {
			t.Errorf("%v flows in above the free part, want 1-0.3123", in)
		}
	}
}

// The field, the energy and the charges of fixed areas are of second order, wherever their edges lie.
func TestEdgesOfFixedAreas(t *testing.T) {
	const cx, cy, radius = 0.5123, 0.4891, 0.4437
	r2 := func(x, y float64) float64 { return (x-cx)*(x-cx) + (y-cy)*(y-cy) }
	outside := fmt.Sprintf("hypot(x - %v, y - %v) >= %v", cx, cy, radius)
	ring := outside + fmt.Sprintf(" or hypot(x - %v, y - %v) <= 0.15", cx, cy)
	wave := func(x, y float64) float64 { return math.Exp(3*x) * math.Cos(3*y) }
	const waveText = "exp(3*x)*cos(3*y)"
	for name, c := range map[string]struct {
		problem configs.Problem
		want    func(x, y float64) float64
		energy  float64
		most    float64 // the error at 65 x 65 points
	}{
		"source in a disc": {configs.Problem{Top: "0", Source: "1", Fixed: outside},
			func(x, y float64) float64 { return max(0, (radius*radius-r2(x, y))/4) },
			math.Pi * math.Pow(radius, 4) / 16, 2e-5},
		"values that vary along the edge": {configs.Problem{Initial: waveText, Fixed: outside, Left: waveText,
			Right: waveText, Top: waveText, Bottom: waveText}, wave, 0, 2e-3},
		"ring": {configs.Problem{Top: "0", Fixed: ring,
			Initial: fmt.Sprintf("hypot(x-%v, y-%v) < 0.3 ? 1 : 0", cx, cy)},
			func(x, y float64) float64 {
				return min(1, max(0, math.Log(radius/math.Sqrt(r2(x, y)))/math.Log(radius/0.15)))
			}, math.Pi / math.Log(radius/0.15), 2e-3},
	} {
		var errs, energies []float64
		for _, n := range []int{17, 33, 65} {
			p := open(t, config(n, n, "float64", c.problem))
			u, r := solve(t, p)
			errs = append(errs, distance(p, u, c.want))
			if c.energy != 0 {
				energies = append(energies, math.Abs(*r.Energy/c.energy-1))
			}
			total := 0.0
			for _, region := range r.Regions {
				total += *region.Flux
			}
			for _, flux := range r.Flux {
				total += *flux
			}
			made := 0.0
			if c.problem.Source == "1" {
				made = math.Pi * radius * radius
			}
			if rest := *r.Balance.Remainder; math.Abs(rest) > 1e-10 {
				t.Errorf("%s, %d^2: remainder %v", name, n, rest)
			}
			if math.Abs(total+made) > 2e-4 {
				t.Errorf("%s, %d^2: fluxes of %v in all, want %v", name, n, total, -made)
			}
		}
		order := math.Log2(errs[0]/errs[2]) / 2
		if order < 1.7 || errs[2] > c.most {
			t.Errorf("%s: errors %.3g, order %.2f, want 2 and at most %g", name, errs, order, c.most)
		}
		for i, e := range energies {
			if e > 0.02/math.Pow(4, float64(i)) {
				t.Errorf("%s: energies off by %.3g, want second order", name, energies)
			}
		}
	}
}

// A coefficient that is none at the edge of a fixed area, between two points at which it is one, is refused.
func TestCoefficientAtEdgesOfFixedAreas(t *testing.T) {
	p := open(t, config(17, 17, "float64", configs.Problem{Top: "1", Fixed: "x >= 0.53",
		Coefficient: "10*(x-0.53)^2 - 0.0001"}))
	if _, err := p.Maxima(t.Context(), 0, 17); err == nil || !strings.Contains(err.Error(), "at x = 0.53") {
		t.Errorf("%v, want an error that names the edge", err)
	}
}

// The value at the edge of a fixed area counts beyond a periodic end, too, along x and along y alike.
func TestEdgesBeyondPeriodicEnds(t *testing.T) {
	right := func(axis string, one configs.Problem) (b []float64) {
		one.Fixed, one.Initial = axis+" > 0.05 and "+axis+" < 0.6", "3*"+axis
		p := open(t, config(9, 9, "float64", one))
		for iy := range 9 {
			row, values := make([]byte, p.mesh.RowBytes()), make([]float64, 9)
			if err := p.ValueRow(iy, solver.Source, row); err != nil {
				t.Fatal(err)
			}
			p.mesh.DType.Decode(values, row)
			b = append(b, values...)
		}
		return b
	}
	along := right("x", configs.Problem{Left: "periodic", Right: "periodic", Top: "0", Bottom: "0"})
	down := right("y", configs.Problem{Top: "periodic", Bottom: "periodic", Left: "0", Right: "0"})
	if along[4*9+7] == 0 {
		t.Error("no value counts beyond the end")
	}
	for iy := 1; iy < 8; iy++ {
		for ix := 1; ix < 8; ix++ {
			if along[iy*9+ix] != down[ix*9+iy] {
				t.Errorf("column %d, row %d: %v, and %v with x for y", ix, iy, along[iy*9+ix], down[ix*9+iy])
			}
		}
	}
}

// A hole without material has its true opening, and a point of it that a lane passes by is a point of the field.
func TestInsulatedHole(t *testing.T) {
	p := open(t, config(33, 33, "float64", configs.Problem{Top: "1", Left: "neumann(0)", Right: "neumann(0)",
		Coefficient: "abs(x-0.5) < 0.251 and abs(y-0.5) < 0.014 ? 0 : 1"}))
	u, r := solve(t, p)
	outside := make([]bool, 33)
	if err := p.OutsideRow(16, outside); err != nil {
		t.Fatal(err)
	}
	for ix, out := range outside {
		if out {
			t.Errorf("column %d of the middle row is outside: lanes beside the slit conduct", ix)
		}
	}
	if flux := *r.Flux["top"]; !(flux > 0.5 && flux < 0.9) || u[16*33+16] == 0 {
		t.Errorf("flux %v past a slit of half the width, want 0.5 to 0.9", flux)
	}
}
