package oracle_test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// solvedFile returns the outcome of a run file of configs, or of none, with keys besides.
func solvedFile(t *testing.T, file string, keys ...string) outcome {
	t.Helper()
	if file != "" {
		file = filepath.Join("../../../configs", file)
	}
	o, err := runFile(t, 1, file, append([]string{"solver.relative_tolerance=1e-11"}, keys...)...)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Converged {
		t.Errorf("%v after %d cycles", o.StopReason, o.Sweeps)
	}
	return o
}

// mesh returns the keys of a mesh of nx by ny points.
func mesh(nx, ny int) []string {
	return []string{fmt.Sprintf("grid.nx=%d", nx), fmt.Sprintf("grid.ny=%d", ny)}
}

// walls returns the keys by which all four sides have the same value.
func walls(value string) (keys []string) {
	for _, side := range []string{"left", "right", "top", "bottom"} {
		keys = append(keys, "problem."+side+"="+value)
	}
	return keys
}

// farthest returns the largest difference between a field of n by n points and a function of x and y from 0 to 1.
func (o outcome) farthest(n int, u func(x, y float64) float64) (largest float64) {
	for i, v := range o.field {
		x, y := float64(i%n)/float64(n-1), float64(i/n)/float64(n-1)
		largest = max(largest, math.Abs(v-u(x, y)))
	}
	return largest
}

// The cases of docs/validation.md, each at two meshes: how far the finer one may be off, and the order in which the
// error falls at least. Where the page says that an answer is far off, it must not be nearer either.
func TestValidation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		coarse, fine int
		within       float64 // at the finer mesh
		order        float64 // of the spacing
		off          func(t *testing.T, n int) float64
	}{
		{"ISO 10211, case 1, K", 65, 129, 1e-3, 1.9, column},
		{"NAFEMS T4, K", 10, 20, 0.004, 1.9, plate},
		{"concentric coaxial line", 65, 129, 8e-5, 1.8, concentric},
		{"eccentric coaxial line", 65, 129, 7e-5, 1.7, eccentric},
		{"dielectric cylinder", 129, 257, 0.0034, 1.1, dielectric},
		{"cylinder in a stream: stream function", 101, 201, 2.5e-5, 1.6, streamFunction},
		{"cylinder in a stream: speed at the crown", 101, 401, 0.01, 0.9, crown},
		{"chip: temperature", 41, 81, 2e-4, 1.8, chipInTheMiddle},
		{"corner of a trace", 80, 160, 4e-4, 1.25, corner},
		{"plate with a hole", 65, 129, 2.5e-5, 1.7, hole},
		{"sheet pile", 33, 65, 0.0081, 0.95, pile},
		{"insulated on all sides", 65, 129, 2e-4, 1.95, insulated},
		{"periodic on all sides", 66, 130, 3e-4, 1.95, repeated},
		{"insulated layers", 65, 129, 6e-6, 1.9, layers},
		{"checkerboard of 1:10", 65, 129, 0.035, 0.7, checkerboard(10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			coarse, fine := c.off(t, c.coarse), c.off(t, c.fine)
			order := math.Log(coarse/fine) / math.Log(float64(c.fine)/float64(c.coarse))
			t.Logf("off by %.3g at %d, by %.3g at %d: order %.2f", coarse, c.coarse, fine, c.fine, order)
			if !(fine <= c.within) || !(order >= c.order) {
				t.Errorf("off by %.3g and %.3g, order %.2f; want at most %g, order %g", coarse, fine, order, c.within,
					c.order)
			}
		})
	}
	if off := checkerboard(1e4)(t, 65); !(off > 16 && off < 17) {
		t.Errorf("checkerboard of 1:10^4: off by %.3g times the right value; docs/validation.md says 16.5", off)
	}
}

// What is said of the mesh's own error is within a factor of 3 of it, and never 10 times too small. Where no mesh
// follows the field, it is about as large as the answer.
func TestStatedErrorOfTheMesh(t *testing.T) {
	t.Parallel()
	flux := func(o outcome) (v, e float64) {
		for i, r := range o.Results.Regions {
			if r.Min == 1 && r.Max == 1 {
				return math.Abs(*r.Flux), *o.Results.Errors.Regions[i]
			}
		}
		return 0, 0
	}
	energy := func(o outcome) (v, e float64) { return 2 * *o.Results.Energy, 2 * *o.Results.Errors.Energy }
	checks := func(c float64) []string {
		return []string{"problem.left=1", "problem.top=neumann(0)", "problem.bottom=neumann(0)",
			fmt.Sprintf("problem.coefficient=mod(floor(4*x) + floor(4*y), 2) == 0 ? 1 : %g", c)}
	}
	for _, c := range []struct {
		name   string
		file   string
		keys   []string
		n      int
		right  float64
		figure func(outcome) (v, e float64)
	}{
		{"coaxial line", "coaxial.yaml", nil, 129, 2 * math.Pi / math.Log(3), flux},
		{"eccentric line", "", eccentricLine, 150, 2 * math.Pi / math.Acosh(1.25), flux},
		{"plate with a hole", "hole.yaml", nil, 200, 0.776714, energy},
		{"checkerboard of 1:10", "", checks(10), 129, math.Sqrt(10), energy},
		{"checkerboard of 1:10^4", "", checks(1e4), 129, 100, energy},
		{"poisson", "poisson.yaml", nil, 100, 0, func(o outcome) (v, e float64) {
			return o.farthest(100, func(x, y float64) float64 {
				return math.Sin(3*math.Pi*x) * math.Sin(2*math.Pi*y)
			}), *o.Accuracy.Mesh.Error
		}},
	} {
		o := solvedFile(t, c.file, append(append(mesh(c.n, c.n), "solver.mesh_error=on"), c.keys...)...)
		v, e := c.figure(o)
		off := math.Abs(v - c.right)
		t.Logf("%s: %g, off by %.2g, stated %.2g", c.name, v, off, e)
		if !(e >= off/3 && e <= 3*off) {
			t.Errorf("%s: %g is off by %.2g; the stated error is %.2g", c.name, v, off, e)
		}
	}
}

// Case 1 of ISO 10211:2007: the largest difference at 28 points of half a square column.
func column(t *testing.T, n int) (largest float64) {
	o := solvedFile(t, "", append(mesh(n, n), "problem.top=20")...)
	step := (n - 1) / 8
	for row := 1; row < 8; row++ {
		for at := 1; at <= 4; at++ {
			x, y, series := float64(at)/8, float64(row)/8, 0.0 // y is the distance from the warm side
			for k := 1.0; k < 400; k += 2 {
				a := k * math.Pi
				series += 80 / a * math.Sin(a*x) * (math.Exp(-a*y) - math.Exp(a*(y-2))) / (1 - math.Exp(-2*a))
			}
			largest = max(largest, math.Abs(o.field[row*step*n+at*step]-series))
		}
	}
	return largest
}

// NAFEMS T4, with a spacing of 0.2 m / n: 18.25376 is what the series has.
func plate(t *testing.T, n int) float64 {
	o := solvedFile(t, "nafems-t4.yaml", mesh(3*n+1, 5*n+1)...)
	return math.Abs(o.field[4*n*(3*n+1)+3*n] - 18.25376)
}

func concentric(t *testing.T, n int) float64 {
	o := solvedFile(t, "coaxial.yaml", mesh(n, n)...)
	return math.Abs(math.Abs(*o.Results.Regions[0].Flux)/(2*math.Pi/math.Log(3)) - 1)
}

// eccentricLine is a line of radii 250 and 100 whose axes are 100 apart.
var eccentricLine = []string{"grid.width=512",
	"problem.fixed=hypot(512*x-256, 512*y-256) >= 250 or hypot(512*x-356, 512*y-256) <= 100",
	"problem.initial=hypot(512*x-356, 512*y-256) < 150 ? 1 : 0"}

func eccentric(t *testing.T, n int) float64 {
	o := solvedFile(t, "", append(mesh(n, n), eccentricLine...)...)
	want := 2 * math.Pi / math.Acosh((100*100+250*250-100*100)/(2*100*250.))
	for _, r := range o.Results.Regions {
		if r.Min == 1 {
			return math.Abs(*r.Flux/want - 1)
		}
	}
	t.Fatalf("no inner conductor in %+v", o.Results.Regions)
	return 0
}

// A cylinder of permittivity 10 and radius 1 in a uniform field of 1, in a square of 8 with exact values on its sides.
func dielectric(t *testing.T, n int) float64 {
	const pole = 9. / 11
	o := solvedFile(t, "", append(append(mesh(n, n), walls(fmt.Sprintf(
		"(8*x-4)*(1 - %.17g/((8*x-4)^2 + (8*y-4)^2))", pole))...), "grid.width=8",
		"problem.coefficient=hypot(8*x-4, 8*y-4) < 1 ? 10 : 1")...)
	return o.farthest(n, func(x, y float64) float64 {
		x, y = 8*x-4, 8*y-4
		if r := x*x + y*y; r >= 1 {
			return x * (1 - pole/r)
		}
		return x * 2 / 11
	})
}

func streamFunction(t *testing.T, n int) float64 {
	o := solvedFile(t, "stream.yaml", mesh(n, n)...)
	return o.farthest(n, func(x, y float64) float64 {
		x, y = x-0.5, y-0.5
		return y * (1 - 0.04/max(x*x+y*y, 0.04))
	})
}

// The speed between the crown of the cylinder and the point above it, which is what output.gradient has there.
func crown(t *testing.T, n int) float64 {
	o := solvedFile(t, "stream.yaml", mesh(n, n)...)
	at := 3*(n-1)/10 - 1 // the row above the crown
	return math.Abs(math.Abs(o.field[at*n+n/2])*float64(n-1)/2 - 1)
}

// The temperature in the middle of a plate, whose series was summed to 10^5 terms.
func chipInTheMiddle(t *testing.T, n int) float64 {
	o := solvedFile(t, "chip.yaml", mesh(n, n)...)
	return math.Abs(o.field[n/2*n+n/2]/0.0400638419284 - 1)
}

// What a chip makes is its area, wherever its edges lie.
func TestHeatOfAChip(t *testing.T) {
	for n, half := range map[int]float64{64: 0.225, 65: 0.225, 66: 0.2, 81: 0.2137} {
		o := solvedFile(t, "chip.yaml", append(mesh(n, n), fmt.Sprintf(
			"problem.source=abs(x - 0.5) < %g and abs(y - 0.5) < %g ? 1 : 0", half, half))...)
		if off := math.Abs(o.fluxes()/(4*half*half) + 1); off > 1e-10 {
			t.Errorf("%d points, half a width of %g: %.9g of %.9g leaves", n, half, -o.fluxes(), 4*half*half)
		}
	}
}

// A trace with a corner as in configs/bend.png, drawn with n pixels a side: the corner has 1 - 2 ln 2/pi squares.
func corner(t *testing.T, n int) float64 {
	picture := image.NewPaletted(image.Rect(0, 0, n, n), color.Palette{color.White, color.RGBA{0xb8, 0x73, 0x33, 0xff}})
	for i := range picture.Pix {
		if i%n < n/4 || i/n >= n-n/4 {
			picture.Pix[i] = 1
		}
	}
	path := filepath.Join(t.TempDir(), "bend.png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, picture); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	o := solvedFile(t, "bend.yaml", "problem.drawing="+path)
	return math.Abs(1/(*o.Results.Flux["top"]*(7-2*math.Ln2/math.Pi)) - 1)
}

// The plate is the unit cell of a square array of holes, whose conductivity is a series by Rayleigh (1892).
func hole(t *testing.T, n int) float64 {
	o := solvedFile(t, "hole.yaml", mesh(n, n)...)
	return math.Abs(*o.Results.Flux["left"]/0.7767144489 - 1)
}

func pile(t *testing.T, n int) float64 {
	o := solvedFile(t, "pile.yaml", mesh(4*(n-1)+1, n)...)
	return math.Abs(*o.Results.Flux["top"]/0.5 - 1)
}

// checkerboard returns the error of the flux through 4 by 4 squares of 1 and a contrast.
func checkerboard(contrast float64) func(*testing.T, int) float64 {
	return func(t *testing.T, n int) float64 {
		o := solvedFile(t, "", append(mesh(n, n), "problem.top=1", "problem.left=neumann(0)",
			"problem.right=neumann(0)", fmt.Sprintf("problem.coefficient=mod(floor(4*x) + floor(4*y), 2) == 0 ? %g : 1",
				contrast))...)
		return math.Abs(*o.Results.Flux["top"]/math.Sqrt(contrast) - 1)
	}
}

// Case 2 of ISO 10211:2007: the heat flux within 0.1 W/m at any spacing, and within 0.1 % at 0.5 mm, where the nine
// temperatures, within 0.1 K, are those of points of the mesh.
func TestISO10211Case2(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spacing, within float64
	}{{1, 0.02}, {0.7, 0.05}, {0.5, 0.0095}} {
		nx, ny := 1+int(math.Round(500/c.spacing)), 1+int(math.Round(47.5/c.spacing))
		o := solvedFile(t, "iso10211.yaml", append(mesh(nx, ny), "output.probes=",
			"solver.relative_tolerance=1e-9")...)
		top, bottom := -*o.Results.Flux["top"], *o.Results.Flux["bottom"]
		t.Logf("%g mm: %.4f W/m", c.spacing, top)
		if math.Abs(top-9.5) > c.within || math.Abs(top-bottom) > 1e-7 {
			t.Errorf("%g mm: %.7f W/m above and %.7f below, want 9.5 within %g", c.spacing, top, bottom, c.within)
		}
		if c.spacing != 0.5 {
			continue
		}
		for _, p := range []struct {
			ix, iy int
			want   float64
		}{{0, 0, 7.1}, {1000, 0, 0.8}, {0, 12, 7.9}, {30, 12, 6.3},
			{1000, 12, 0.8}, {0, 22, 16.4}, {30, 22, 16.3}, {0, 95, 16.8}, {1000, 95, 18.3}} {
			if u := o.field[p.iy*nx+p.ix]; math.Abs(u-p.want) > 0.1 {
				t.Errorf("%.3f degrees in column %d of row %d, want %g", u, p.ix, p.iy, p.want)
			}
		}
	}
}

// Insulated on all sides: a product of cosines.
func insulated(t *testing.T, n int) float64 {
	o := solvedFile(t, "", append(append(mesh(n, n), walls("neumann(0)")...),
		"problem.source=5*pi^2*cos(pi*x)*cos(2*pi*y)")...)
	return o.farthest(n, func(x, y float64) float64 { return math.Cos(math.Pi*x) * math.Cos(2*math.Pi*y) })
}

// Periodic on all sides; the source has a constant, which is taken off.
func repeated(t *testing.T, n int) float64 {
	o := solvedFile(t, "", append(append(mesh(n, n), walls("periodic")...),
		"problem.source=8*pi^2*cos(2*pi*x)*cos(2*pi*y) + 0.125")...)
	if off := o.Setup.TakenOff; math.Abs(off.Amount-0.125) > 1e-14 {
		t.Errorf("%+v is taken off, want 0.125", *off)
	}
	last := float64(n-1) / float64(n-2)
	return o.farthest(n, func(x, y float64) float64 {
		return math.Cos(2*math.Pi*last*x) * math.Cos(2*math.Pi*last*y)
	})
}

// Two layers of coefficients 1 and 3 between insulated sides: a u' = -sin(pi x)/pi.
func layers(t *testing.T, n int) float64 {
	o := solvedFile(t, "", append(append(mesh(n, n), walls("neumann(0)")...), "problem.source=cos(pi*x)",
		"problem.coefficient=x < 0.5 ? 1 : 3")...)
	return o.farthest(n, func(x, _ float64) float64 {
		a := 1.0
		if x > 0.5 {
			a = 3
		}
		return math.Cos(math.Pi*x)/(math.Pi*math.Pi*a) - 2/(3*math.Pi*math.Pi*math.Pi)
	})
}
