package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// order returns the mean order in which errors fall from each mesh to the next.
func order(t *testing.T, name string, least float64, errs []float64) {
	t.Helper()
	last := len(errs) - 1
	got := math.Log2(errs[0]/errs[last]) / float64(last)
	t.Logf("%s: off by %.3g: order %.2f", name, errs, got)
	if !(got >= least) || !(errs[last] < errs[0]) {
		t.Errorf("%s: off by %.3g: order %.2f, want %g", name, errs, got, least)
	}
}

// Between spheres of radii a and b around a place on the axis the charge is 4 pi a b/(b-a), and the potential
// a b/(b-a) (1/r - 1/b).
func TestConcentricSpheres(t *testing.T) {
	t.Parallel()
	const charge = 4 * math.Pi * 0.25 * 0.75 / 0.5
	var charges, fields []float64
	for _, n := range []int{33, 65, 129} {
		o := solvedFile(t, "", append(mesh(n, 2*n-1), "grid.axis=left",
			"problem.fixed=hypot(x, 2*y-1) <= 0.25 or hypot(x, 2*y-1) >= 0.75",
			"problem.initial=hypot(x, 2*y-1) < 0.5 ? 1 : 0")...)
		worst, onAxis := 0.0, 0.0
		for i, v := range o.field {
			x, y := float64(i%n)/float64(n-1), float64(i/n)/float64(n-1)-1
			if r := math.Hypot(x, y); r > 0.25 && r < 0.75 {
				off := math.Abs(v - 0.375*(1/r-1/0.75))
				if worst = max(worst, off); x == 0 {
					onAxis = max(onAxis, off)
				}
			}
		}
		for _, r := range o.Results.Regions {
			if r.Min == 1 {
				charges = append(charges, math.Abs(*r.Flux-charge))
			}
		}
		if sum := o.fluxes(); math.Abs(sum) > 1e-9 {
			t.Errorf("%d columns: charges add up to %g", n, sum)
		}
		middle := o.field[(n-1-(n-1)/2)*n] // at r = 1/2
		if off := math.Abs(2**o.Results.Energy - charge); n == 129 && (onAxis > 1e-4 || math.Abs(middle-0.25) > 1e-4 ||
			charges[2] > 1e-5 || off > 1e-5) {
			t.Errorf("field on the axis off by %g, %g at r = 1/2, charge off by %g, twice the energy by %g", onAxis,
				middle, charges[2], off)
		}
		fields = append(fields, worst)
	}
	order(t, "charge", 1.8, charges)
	order(t, "field", 1.6, fields)
}

// Between coaxial cylinders the potential is that of ln r, with a layer of another material, too, and the charge of a
// length L is 2 pi L over the integral of 1/(a r).
func TestCoaxialCylinders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fixed, coefficient string
		resistance         float64
	}{
		"one material":    {"x <= 0.3", "1", math.Log(1 / 0.3)},
		"two":             {"x <= 0.3", "x < 0.55 ? 4 : 1", math.Log(0.55/0.3)/4 + math.Log(1/0.55)},
		"a tube, thinner": {"x == 0.3", "1", math.Log(1 / 0.3)}, // than a spacing
	} {
		var charges []float64
		for _, n := range []int{33, 65, 129, 257} {
			o := solvedFile(t, "", append(mesh(n, 9), "grid.axis=left", "grid.height=2", "problem.top=neumann(0)",
				"problem.bottom=neumann(0)", "problem.fixed="+c.fixed, "problem.initial=1",
				"problem.coefficient="+c.coefficient)...)
			charges = append(charges, math.Abs(*o.Results.Flux["right"]+4*math.Pi/c.resistance))
		}
		order(t, name, 1.85, charges)
		if last := charges[3]; last > 3e-4 {
			t.Errorf("%s: off by %g", name, last)
		}
	}
}

// bessel returns I0(x) by its series.
func bessel(x float64) (sum float64) {
	term := 1.0
	for k := 1.0; term > 1e-18*sum; k++ {
		sum += term
		term *= x * x / (4 * k * k)
	}
	return sum
}

// A field that varies along the axis and away from it, I0(3 r) cos(2 z) with a screening of 5, is of order 2 up to the
// axis, with values, a flux or a heat transfer on the sides, and so is its mean.
func TestOrderUpToTheAxis(t *testing.T) {
	t.Parallel()
	edge, slope := bessel(3), (bessel(3+1e-5)-bessel(3-1e-5))/2e-5*3
	mean := slope / 9 * 2 * math.Sin(2) / 2 // the integral of I0(3 r) r is the slope at 1 over 9
	for name, side := range map[string]string{
		"values": fmt.Sprintf("%.17g*cos(2*y)", edge),
		"flux":   fmt.Sprintf("flux(%.17g*cos(2*y))", slope),
		"robin":  fmt.Sprintf("robin(2, %.17g*cos(2*y))", slope+2*edge),
	} {
		var fields, means, fluxes []float64
		for _, n := range []int{33, 65, 129} {
			// k2 u - lap u = (k2 - 9 + 4) u
			o := solvedFile(t, "", append(mesh(n, n), "grid.axis=left", "problem.screening=5", "problem.top=neumann(0)",
				fmt.Sprintf("problem.bottom=robin(1, (cos(2) - 2*sin(2))*(%s))", series), "problem.right="+side)...)
			fields = append(fields, o.farthest(n, func(x, y float64) float64 { return bessel(3*x) * math.Cos(2*y) }))
			means = append(means, math.Abs(*o.Results.Mean-mean))
			fluxes = append(fluxes, math.Abs(*o.Results.Flux["right"]-2*math.Pi*slope*math.Sin(2)/2))
		}
		order(t, name+": field", 1.9, fields)
		order(t, name+": mean", 1.9, means)
		if name == "flux" {
			if fluxes[2] > 0.002 {
				t.Errorf("flux off by %g", fluxes[2])
			}
			continue
		}
		order(t, name+": flux", 1.9, fluxes)
	}
}

// series is I0(3 x) as an expression.
var series = func() string {
	text, factor := "1", 1.0
	for k := 1.0; k <= 16; k++ {
		factor *= 9 / (4 * k * k)
		text += fmt.Sprintf(" + %.17g*x^%g", factor, 2*k)
	}
	return text
}()

// A quadratic field is exact: u = r^2 has the source -4, and 2 pi r of it flows through the side.
func TestQuadraticAroundTheAxis(t *testing.T) {
	o := solvedFile(t, "", append(mesh(20, 7), "grid.axis=left", "grid.height=0.5", "problem.top=neumann(0)",
		"problem.bottom=neumann(0)", "problem.source=-4", "problem.right=1")...)
	if off := o.farthest2(20, 7, func(x, _ float64) float64 { return x * x }); off > 1e-10 {
		t.Errorf("the field is off by %g", off)
	}
	if flux := *o.Results.Flux["right"]; math.Abs(flux-2*math.Pi) > 1e-9 {
		t.Errorf("flux %g, want 2 pi", flux)
	}
}

// A field that nothing fixes has the mean 0 over the body, and the source lacks what does not flow out: u = r^2 - 1/2
// has the source -4, of which 2 flow in.
func TestLooseAroundTheAxis(t *testing.T) {
	for axis, far := range map[string]string{"left": "right", "right": "left", "top": "bottom", "bottom": "top"} {
		keys := append(mesh(33, 33), "grid.axis="+axis, "problem.source=-4.5", "solver.relative_tolerance=1e-11")
		for _, side := range sideNames {
			if side != axis && side != far {
				keys = append(keys, "problem."+side+"=neumann(0)")
			}
		}
		o, err := runFile(t, 3, "", append(keys, "problem."+far+"=flux(2)")...)
		if err != nil {
			t.Fatal(err)
		}
		off := o.farthest(33, func(x, y float64) float64 {
			r := map[string]float64{"left": x, "right": 1 - x, "top": y, "bottom": 1 - y}[axis]
			return r*r - 0.5
		})
		// The mean is that of the points, by their parts of the body, and differs from that of r^2 by less than h^2/4.
		if taken := o.Setup.TakenOff.Amount; taken != -0.5 || off > 0.26/1024 || math.Abs(*o.Results.Mean) > 1e-14 {
			t.Errorf("%s: off by %g, %g is taken off, mean %g", axis, off, taken, *o.Results.Mean)
		}
	}
}

// farthest2 is farthest of nx by ny points.
func (o outcome) farthest2(nx, ny int, u func(x, y float64) float64) (largest float64) {
	for i, v := range o.field {
		largest = max(largest, math.Abs(v-u(float64(i%nx)/float64(nx-1), float64(i/nx)/float64(ny-1))))
	}
	return largest
}

// turned returns the keys of a problem, with r and z from 0 to 1, around one of the sides.
func turned(axis string, nr, nz int) (keys []string, at func(ir, iz int) int) {
	across, along := "x", "y"
	if axis == "right" {
		across = "(1-x)"
	} else if axis != "left" {
		across, along = "y", "x"
		if axis == "bottom" {
			across = "(1-y)"
		}
	}
	far := map[string]string{"left": "right", "right": "left", "top": "bottom", "bottom": "top"}[axis]
	keys, low, high := append(mesh(nr, nz), "grid.width=1", "grid.height=1.5"), "top", "bottom"
	at = func(ir, iz int) int { return iz*nr + ir }
	switch axis {
	case "right":
		at = func(ir, iz int) int { return iz*nr + nr - 1 - ir }
	case "top":
		at = func(ir, iz int) int { return ir*nz + iz }
	case "bottom":
		at = func(ir, iz int) int { return (nr-1-ir)*nz + iz }
	}
	if along == "x" {
		keys, low, high = append(mesh(nz, nr), "grid.width=1.5", "grid.height=1"), "left", "right"
	}
	for key, text := range map[string]string{
		"coefficient": "Z < 0.35 ? 5 : R < 0.6 ? 2 : 1", "source": "R > 0.55 ? 3 : Z", "screening": "R < 0.3 ? 2 : 0",
		"fixed": "(abs(R-0.2) < 0.13 and abs(Z-0.3) < 0.09) or (R > 0.65 and abs(Z-0.7) < 0.13)", "initial": "1+R-Z*Z",
		far: "robin(2, Z > 0.4 ? 1 : 3)", low: "R*R", high: "flux(R < 0.51 ? 2 : -1)",
	} {
		keys = append(keys, "problem."+key+"="+strings.NewReplacer("R", across, "Z", along).Replace(text))
	}
	return append(keys, "grid.axis="+axis, "solver.relative_tolerance=1e-14"), at
}

// All four sides give the same, and any number of ranks the same bits.
func TestAxisOnEachSide(t *testing.T) {
	const nr, nz = 41, 65
	keys, place := turned("left", nr, nz)
	want := solvedFile(t, "", keys...)
	figures := func(o outcome) (list []float64) {
		list = append(list, *o.Results.Energy, *o.Results.Mean, *o.Results.Balance.Source, *o.Results.Balance.Screening,
			o.fluxes())
		fluxes := []float64{*o.Results.Regions[0].Flux, *o.Results.Regions[1].Flux} // numbered by rows
		slices.Sort(fluxes)
		return append(list, fluxes...)
	}
	for _, axis := range []string{"right", "top", "bottom"} {
		keys, at := turned(axis, nr, nz)
		o := solvedFile(t, "", keys...)
		worst := 0.0
		for ir := range nr {
			for iz := range nz {
				worst = max(worst, math.Abs(o.field[at(ir, iz)]-want.field[place(ir, iz)]))
			}
		}
		if worst > 1e-12 {
			t.Errorf("%s: the field differs by %g", axis, worst)
		}
		got, left := figures(o), figures(want)
		for i := range left {
			if math.Abs(got[i]-left[i]) > 1e-11*max(1, math.Abs(left[i])) {
				t.Errorf("%s: figure %d: %.15g, not %.15g", axis, i, got[i], left[i])
			}
		}
		for _, ranks := range []int{2, 3, 8} {
			many, err := runFile(t, ranks, "", keys...)
			if err != nil {
				t.Fatal(err)
			}
			if many.FieldHash != o.FieldHash || *many.Norm != *o.Norm || *many.Results.Energy != *o.Results.Energy {
				t.Errorf("%s: %d ranks give other bits", axis, ranks)
			}
		}
	}
}

// A long solenoid: the vector potential A around its axis obeys -div(grad A) + A/r^2 = mu J. Where currents of density
// 50 flow between r = 0.4 and 0.42, the flux density is 1 inside, so A is r/2 there, and outside all of the flux over
// 2 pi r. The layer has a width that no mesh of the test resolves.
func TestSolenoid(t *testing.T) {
	const a, b, density = 0.4, 0.42, 50.0
	outside := density * (b*b*b - a*a*a) / 6 // flux over 2 pi
	off := func(n int) (largest float64) {
		o := solvedFile(t, "", append(mesh(n, 17), "grid.axis=left", "problem.top=neumann(0)",
			"problem.bottom=neumann(0)", "problem.screening=1/max(x, 1e-4)^2",
			fmt.Sprintf("problem.source=x > %g and x < %g ? %g : 0", a, b, density),
			fmt.Sprintf("problem.right=%.17g", outside))...)
		for ix := range n {
			want, r := 0.0, float64(ix)/float64(n-1)
			switch {
			case r < a:
				want = r / 2
			case r > b:
				want = outside / r
			default:
				continue
			}
			largest = max(largest, math.Abs(o.field[8*n+ix]-want))
		}
		return largest
	}
	coarse, fine := off(65), off(257)
	t.Logf("the potential is off by %.2g, then by %.2g", coarse, fine)
	if coarse > 6e-4 || fine > 3e-5 {
		t.Errorf("the potential is off by %g, then by %g", coarse, fine)
	}
}
