package oracle_test

import (
	"fmt"
	"math"
	"testing"
)

// worst returns the largest difference between the field of a run of nx by ny points and a function of x and y, which
// go from 0 to 1.
func worst(t *testing.T, nx, ny int, want func(x, y float64) float64, keys ...string) (largest float64) {
	t.Helper()
	keys = append(keys, fmt.Sprintf("grid.nx=%d", nx), fmt.Sprintf("grid.ny=%d", ny), "solver.tolerance=1e-14",
		"solver.max_iterations=1000000")
	o, err := run(t, 1, keys...)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range o.field {
		x, y := float64(i%nx)/float64(nx-1), float64(i/nx)/float64(ny-1)
		largest = max(largest, math.Abs(v-want(x, y)))
	}
	return largest
}

// A wall of two layers with a contrast of 10^6, whose interface lies between two points, is solved exactly: the
// resistances of the layers add up.
func TestLayeredWall(t *testing.T) {
	const at, contrast = 15.5 / 32, 1e6
	resistance := func(x float64) float64 { return min(x, at) + max(0, x-at)*contrast }
	along := func(x, _ float64) float64 { return 1 - resistance(x)/resistance(1) }
	if e := worst(t, 33, 9, along, "problem.left=1", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
		"problem.coefficient=x < 0.484375 ? 1 : 1e-6"); e > 1e-11 {
		t.Errorf("layers along x: error %g", e)
	}
	if e := worst(t, 5, 33, func(x, y float64) float64 { return along(y, x) }, "problem.top=1", "problem.left=periodic",
		"problem.right=periodic", "problem.coefficient=y < 0.484375 ? 1 : 1e-6"); e > 1e-11 {
		t.Errorf("layers along y: error %g", e)
	}
}

// flux(q) lets in q, whatever the material beside the side: a wall of one material, of two layers, and of one material
// where points have weights. A q that is there along a part of a side lets in its length times q on any mesh.
func TestFluxThroughASide(t *testing.T) {
	const at, q, width, a = 15.5 / 32, 100.0, 2.0, 0.063
	heat := func(resistance func(x float64) float64) func(x, _ float64) float64 {
		return func(x, _ float64) float64 { return q * width * (resistance(1) - resistance(x)) }
	}
	one := heat(func(x float64) float64 { return x / a })
	two := heat(func(x float64) float64 { return min(x, at) + max(0, x-at)*5 })
	for _, c := range []struct {
		u    func(x, y float64) float64
		keys []string
	}{{one, []string{"problem.coefficient=0.063"}}, {two, []string{"problem.coefficient=x < 0.484375 ? 1 : 0.2"}},
		{one, []string{"problem.coefficient=x < 2 ? 0.063 : 1"}}} {
		keys := append(c.keys, "problem.top=neumann(0)", "problem.bottom=neumann(0)", "grid.width=2")
		if e := worst(t, 33, 9, c.u, append(keys, "problem.left=flux(100)")...); e > 1e-11*c.u(0, 0) {
			t.Errorf("%v: error %g", c.keys, e)
		}
		for _, side := range []string{"left", "top"} {
			o := solved(t, 33, append(keys, "problem."+side+"=flux(x + y < 0.3 ? 100 : 0)")...)
			if got := *o.Results.Flux[side]; math.Abs(got-0.3*100*width) > 1e-9 {
				t.Errorf("%v: flux %v through a part of %s, want %v", c.keys, got, side, 0.3*100*width)
			}
		}
	}
}

// Lengths cancel from a flux, as docs/units.md says: a wall of 20 nm that is heated, cooled by air and lets a flux in
// is the same in metres and in nanometres. The wire of that page has the charge of the formula.
func TestUnits(t *testing.T) {
	const a, f, h, q, u0, width, height = 1.4, 3e15, 2e7, 5e6, 300.0, 2e-8, 1e-8
	for _, nm := range []float64{1, 1e9} { // in a metre
		o := solved(t, 33, fmt.Sprintf("grid.width=%g", width*nm), fmt.Sprintf("grid.height=%g", height*nm),
			fmt.Sprintf("problem.coefficient=%g", a), fmt.Sprintf("problem.source=%g", f/nm/nm),
			fmt.Sprintf("problem.left=robin(%g, %g)", h/nm, h/nm*u0), fmt.Sprintf("problem.right=flux(%g)", q/nm),
			"problem.top=neumann(0)", "problem.bottom=neumann(0)")
		out := f*width + q
		for _, c := range []struct{ got, want float64 }{
			{*o.Results.Flux["left"], -out * height}, {*o.Results.Flux["right"], q * height},
			{o.field[16*33], u0 + out/h},
			{o.field[16*33+32], u0 + out/h + q*width/a + f*width*width/(2*a)},
		} {
			if math.Abs(c.got-c.want) > 1e-9*math.Abs(c.want) {
				t.Errorf("%g in a metre: %v, want %v", nm, c.got, c.want)
			}
		}
	}
	o := solved(t, 257, "grid.width=30", "problem.coefficient=3.9*8.854188",
		"problem.fixed=hypot(30*x - 15, 30*y - 15) <= 10 or hypot(30*x - 15, 30*y - 15) >= 12",
		"problem.initial=hypot(30*x - 15, 30*y - 15) < 11 ? 1 : 0")
	want := 2 * math.Pi * 3.9 * 8.854188 / math.Log(1.2)
	if got := *o.Results.Regions[1].Flux; fmt.Sprintf("%.2f %.2f", got, want) != "1190.01 1190.02" {
		t.Errorf("charge of the wire %v, want %v", got, want)
	}
}

// The flux and the energy of the layered wall follow from its resistance, those of a wall of one material from its
// coefficient, and holes do not count in the mean. Where the layer that conducts well has values near 1, they differ by
// 6e-8 from point to point, which rounding changes by 1e-9 or so.
func TestFluxesOfMaterials(t *testing.T) {
	near := func(name string, got *float64, want, within float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > within*math.Abs(want) {
			t.Errorf("%s %v, want %v", name, *got, want)
		}
	}
	wall := []string{"grid.nx=33", "grid.ny=9", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
		"solver.tolerance=1e-17", "solver.max_iterations=1000000"}
	layers, conductance := "problem.coefficient=x < 0.484375 ? 1 : 1e-6", 1/(15.5/32+16.5/32*1e6)
	for _, c := range []struct {
		coefficient, side string // that has the value 1
		conductance, near float64
		method            string
	}{{layers, "right", conductance, 1e-9, "jacobi"}, {layers, "left", conductance, 1e-7, "jacobi"},
		{layers, "right", conductance, 1e-12, "multigrid"}, {layers, "left", conductance, 4e-9, "multigrid"},
		{"problem.coefficient=7", "left", 7, 1e-12, "jacobi"}} {
		keys := append(wall, "solver.method="+c.method, c.coefficient, "problem."+c.side+"=1")
		if c.method == "multigrid" {
			keys = append(keys, "solver.tolerance=0", "solver.relative_tolerance=1e-15")
		}
		o, err := run(t, 2, keys...)
		if err != nil {
			t.Fatal(err)
		}
		flux := c.conductance / 4
		if c.side == "right" {
			flux = -flux
		}
		near("left", o.Results.Flux["left"], flux, c.near)
		near("right", o.Results.Flux["right"], -flux, min(c.near, 1e-9))
		near("energy", o.Results.Energy, c.conductance/8, 1e-9)
	}
	o, err := run(t, 1, append(wall, "problem.left=1", "problem.right=1", "problem.coefficient=y > 0.4 ? 0 : 2")...)
	if err != nil {
		t.Fatal(err)
	}
	near("mean", o.Results.Mean, 1, 1e-9)
	if o.Results.Min.Value < 1-1e-12 {
		t.Errorf("least value %v in the hole", o.Results.Min)
	}
}
