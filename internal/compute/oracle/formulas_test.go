package oracle_test

import (
	"fmt"
	"math"
	"testing"
)

// solved returns the outcome of a run of n x n points by multigrid.
func solved(t *testing.T, n int, keys ...string) outcome {
	t.Helper()
	keys = append(keys, fmt.Sprintf("grid.nx=%d", n), fmt.Sprintf("grid.ny=%d", n), "solver.relative_tolerance=1e-11")
	o, err := run(t, 1, keys...)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Converged {
		t.Errorf("%d x %d: %d cycles, %v", n, n, o.Sweeps, o.StopReason)
	}
	return o
}

// The effective conductivity of a checkerboard of a1 and a2 tends to sqrt(a1 a2) (Keller 1964, Dykhne 1970), at the
// rate of the singularity at the corners of its squares: h^1.56 for 1:2, and h^0.77 for 1:10.
func TestCheckerboard(t *testing.T) {
	for contrast, rate := range map[float64]float64{2: 1.56, 10: 0.77} {
		off := func(n int) float64 {
			o := solved(t, n, "problem.left=1", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
				fmt.Sprintf("problem.coefficient=mod(floor(8*x) + floor(8*y), 2) == 1 ? %g : 1", contrast))
			return math.Abs(*o.Results.Flux["left"] - math.Sqrt(contrast))
		}
		coarse, fine := off(129), off(257)
		slope := math.Log2(coarse / fine)
		t.Logf("1:%g: off by %.3g, then %.3g: h^%.2f", contrast, coarse, fine, slope)
		if math.Abs(slope-rate) > 0.12 {
			t.Errorf("1:%g: the error falls as h^%.2f, not h^%.2f", contrast, slope, rate)
		}
	}
}

// cylinder returns the solution around a cylinder of coefficient e in a uniform field along x, outside of it, and the
// keys that give its values on the walls.
func cylinder(e float64) (u func(x, y float64) float64, keys []string) {
	const radius = 0.25
	pole := (e - 1) / (e + 1) * radius * radius
	formula := fmt.Sprintf("(x-0.5)*(1 - %.17g/((x-0.5)^2 + (y-0.5)^2))", pole)
	for _, side := range []string{"left", "right", "top", "bottom"} {
		keys = append(keys, "problem."+side+"="+formula)
	}
	keys = append(keys, fmt.Sprintf("problem.coefficient=hypot(x-0.5, y-0.5) < %g ? %g : 1", radius, e))
	return func(x, y float64) float64 {
		return (x - 0.5) * (1 - pole/((x-0.5)*(x-0.5)+(y-0.5)*(y-0.5)))
	}, keys
}

// Around an insulated hole the field is that of a dipole, and the fluxes balance.
func TestInsulatedHole(t *testing.T) {
	u, keys := cylinder(0)
	off := func(n int) (largest float64) {
		o := solved(t, n, keys...)
		for i, v := range o.field {
			if x, y := float64(i%n)/float64(n-1), float64(i/n)/float64(n-1); math.Hypot(x-0.5, y-0.5) > 0.3 {
				largest = max(largest, math.Abs(v-u(x, y)))
			}
		}
		if sum := o.fluxes(); math.Abs(sum) > 1e-9 {
			t.Errorf("%d x %d: fluxes add up to %g", n, n, sum)
		}
		return largest
	}
	coarse, fine := off(65), off(257)
	t.Logf("the far field is off by %.2g, then %.2g", coarse, fine)
	if fine > 0.004 || fine > coarse/2 {
		t.Errorf("the far field is off by %g, then by %g", coarse, fine)
	}
}

// A microstrip as wide as its board is thick has the impedance and the effective permittivity of Hammerstad and Jensen
// (1980), which are those of a strip without walls. The strip is a row of points on the surface of the board.
// MICROSTRIP=1025 runs 1025 x 1025 points.
func TestMicrostrip(t *testing.T) {
	const impedance, permittivity = 71.031, 3.1678 // for w/h = 1 and e = 4.4
	n, near := int(number(t, "MICROSTRIP", 257)), 0.025
	if n >= 1025 {
		near = 0.01
	}
	row, half := n-1-n/16, n/32
	charge := func(coefficient string) float64 {
		o := solved(t, n, "grid.width=16", fmt.Sprintf("problem.fixed=iy == %d and abs(ix - %d) <= %d", row, n/2, half),
			fmt.Sprintf("problem.initial=iy == %d ? 1 : 0", row), "problem.coefficient="+coefficient)
		return 2 * *o.Results.Energy
	}
	air := charge("1")
	full := charge("y > 15.0/16 ? 4.4 : 1")
	z, e := 376.730/math.Sqrt(full*air), full/air
	t.Logf("%d x %d: impedance %.2f, effective permittivity %.4f", n, n, z, e)
	if math.Abs(z/impedance-1) > near || math.Abs(e/permittivity-1) > 0.01 {
		t.Errorf("impedance %g of %g, effective permittivity %g of %g", z, impedance, e, permittivity)
	}
}

// A side may be part electrode, part insulated: a Neumann wall with fixed points. Between an electrode that reaches
// from the middle of the left to the middle of the top, and one from the middle of the right to the middle of the
// bottom, the flux is 1, as a quarter turn exchanges electrodes and insulation. The ends of electrodes cost order 1.
func TestSidesThatAreElectrodesInPart(t *testing.T) {
	off := func(n int) float64 {
		o := solved(t, n, "problem.left=neumann(0)", "problem.right=neumann(0)", "problem.top=neumann(0)",
			"problem.bottom=neumann(0)", "problem.initial=x + y < 1 ? 1 : 0", "problem.fixed=(ix == 0 or iy == 0) and "+
				"max(x, y) < 0.5 or (ix == nx-1 or iy == ny-1) and min(x, y) > 0.5")
		return math.Abs(*o.Results.Regions[0].Flux - 1)
	}
	coarse, fine := off(64), off(128)
	if slope := math.Log2(coarse / fine); fine > 0.003 || slope < 0.9 {
		t.Errorf("the flux is off by %.3g, then by %.3g: h^%.2f", coarse, fine, slope)
	}
}

// With a Robin wall on any side, a smooth coefficient and a source, the errors of field, energy and fluxes fall with
// the square of the spacing: u = exp(x) cos(y), a = exp(y).
func TestRobinOnEachSide(t *testing.T) {
	u := map[string]string{"left": "cos(y)", "right": "exp(1)*cos(y)", "top": "exp(x)", "bottom": "exp(x)*cos(1)"}
	flux := map[string]string{"left": "-exp(y)*cos(y)", "right": "exp(y)*exp(1)*cos(y)", "top": "0",
		"bottom": "-exp(1)*exp(x)*sin(1)"}
	left := -(math.E*(math.Sin(1)+math.Cos(1)) - 1) / 2
	want := map[string]float64{"left": left, "right": -math.E * left, "bottom": -math.E * math.Sin(1) * (math.E - 1)}
	for side := range u {
		keys := []string{"problem.coefficient=exp(y)", "problem.source=exp(x + y)*sin(y)"}
		for s, values := range u {
			if s == side {
				values = fmt.Sprintf("robin(2, %s + 2*%s)", flux[s], values)
			}
			keys = append(keys, "problem."+s+"="+values)
		}
		off := func(n int) map[string]float64 {
			o := solved(t, n, keys...)
			errs := map[string]float64{"energy": math.Abs(*o.Results.Energy - (math.E-1)*(math.E*math.E-1)/4)}
			for i, v := range o.field {
				x, y := float64(i%n)/float64(n-1), float64(i/n)/float64(n-1)
				errs["field"] = max(errs["field"], math.Abs(v-math.Exp(x)*math.Cos(y)))
			}
			for s, w := range want {
				errs["flux "+s] = math.Abs(*o.Results.Flux[s] - w)
			}
			return errs
		}
		coarse, fine := off(33), off(65)
		for name := range coarse {
			if slope := math.Log2(coarse[name] / fine[name]); slope < 1.85 || slope > 2.3 {
				t.Errorf("robin on %s: %s: errors %.3g and %.3g: slope %.2f", side, name, coarse[name], fine[name],
					slope)
			}
		}
	}
}
