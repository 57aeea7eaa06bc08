package oracle_test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// blended writes a picture of n by n pixels of the unit square, whose colours are those of its shapes on white, by the
// parts of the pixels that they cover; if sharp is set, those of the middles of pixels.
func blended(t *testing.T, n int, sharp bool, shapes map[color.RGBA]func(x, y float64) bool) string {
	t.Helper()
	const parts = 16
	picture := image.NewRGBA(image.Rect(0, 0, n, n))
	for i := range n * n {
		white := color.RGBA{0xff, 0xff, 0xff, 0xff}
		sum := [3]float64{}
		for k := range parts * parts {
			x, y := float64(k%parts)+0.5, float64(k/parts)+0.5
			if sharp {
				x, y = parts/2+1e-6, parts/2+1e-6
			}
			c := white
			for of, in := range shapes {
				if in((float64(i%n)+x/parts)/float64(n), (float64(i/n)+y/parts)/float64(n)) {
					c = of
				}
			}
			for j, v := range [3]uint8{c.R, c.G, c.B} {
				sum[j] += float64(v) / (parts * parts)
			}
		}
		picture.SetRGBA(i%n, i/n, color.RGBA{uint8(sum[0] + 0.5), uint8(sum[1] + 0.5), uint8(sum[2] + 0.5), 0xff})
	}
	path := filepath.Join(t.TempDir(), "smooth.png")
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
	return path
}

var copper, blue = color.RGBA{0xb8, 0x73, 0x33, 0xff}, color.RGBA{0x15, 0x65, 0xc0, 0xff}

const conductors = "problem.colours=#b87333 name=in value=1; #1565c0 name=out value=0; #ffffff"

// smoothCoaxial returns the error of the charge of a coaxial line that is drawn with n by n pixels.
func smoothCoaxial(t *testing.T, n int, sharp bool, ranks int) (off float64, o outcome) {
	radius := func(x, y float64) float64 { return math.Hypot(x-0.503, y-0.497) }
	path := blended(t, n, sharp, map[color.RGBA]func(x, y float64) bool{
		copper: func(x, y float64) bool { return radius(x, y) < 0.15 },
		blue:   func(x, y float64) bool { return radius(x, y) > 0.45 }})
	o, err := runFile(t, ranks, "", "solver.relative_tolerance=1e-11", "problem.drawing="+path, conductors)
	if err != nil {
		t.Fatal(err)
	}
	return math.Abs(*o.Results.Regions[0].Flux)/(2*math.Pi/math.Log(3)) - 1, o
}

// slanted returns the largest error between two drawn half planes at an angle.
func slanted(t *testing.T, n int, sharp bool) float64 {
	dx, dy := math.Cos(1.1), math.Sin(1.1)
	u := func(x, y float64) float64 { return min(max((dx*x+dy*y-0.4)/0.53, 0), 1) }
	path := blended(t, n, sharp, map[color.RGBA]func(x, y float64) bool{
		copper: func(x, y float64) bool { return u(x, y) == 1 }, blue: func(x, y float64) bool { return u(x, y) == 0 }})
	sides := walls(fmt.Sprintf("min(max((%.17g*x + %.17g*y - 0.4)/0.53, 0), 1)", dx, dy))
	return solvedFile(t, "", append(sides, "problem.drawing="+path, conductors)...).farthest(n+1, u)
}

// smoothCylinder returns the largest error of a drawn dielectric cylinder in a uniform field.
func smoothCylinder(t *testing.T, n int, sharp bool) float64 {
	inside := func(x, y float64) bool { return math.Hypot(x-0.5, y-0.5) < 0.25 }
	outside, keys := cylinder(10)
	keys[len(keys)-1] = "problem.colours=#b87333 coefficient=10; #ffffff" // in the place of the coefficient
	path := blended(t, n, sharp, map[color.RGBA]func(x, y float64) bool{copper: inside})
	return solvedFile(t, "", append(keys, "problem.drawing="+path)...).farthest(n+1, func(x, y float64) float64 {
		if inside(x, y) {
			return 2.0 / 11 * (x - 0.5)
		}
		return outside(x, y)
	})
}

// What is drawn with smooth edges is several times nearer to the right values than what is drawn with sharp ones, and
// is the same on all numbers of ranks.
func TestSmoothPictures(t *testing.T) {
	t.Parallel()
	charge := func(t *testing.T, n int, sharp bool) float64 {
		off, _ := smoothCoaxial(t, n, sharp, 1)
		return math.Abs(off)
	}
	for _, c := range []struct {
		name   string
		off    func(t *testing.T, n int, sharp bool) float64
		within float64
		nearer float64 // how many times at least
	}{
		{"coaxial line", charge, 8e-4, 30},
		{"half planes at an angle", slanted, 1.3e-3, 12},
		{"dielectric cylinder", smoothCylinder, 2e-3, 5},
	} {
		smooth, sharp := c.off(t, 64, false), c.off(t, 64, true)
		t.Logf("%s: off by %.3g, by %.3g with sharp edges", c.name, smooth, sharp)
		if !(smooth <= c.within) || !(sharp >= c.nearer*smooth) {
			t.Errorf("%s: off by %.3g, by %.3g with sharp edges; want at most %g, and %g times less", c.name, smooth,
				sharp, c.within, c.nearer)
		}
	}
	_, one := smoothCoaxial(t, 64, false, 1)
	_, three := smoothCoaxial(t, 64, false, 3)
	if !slices.Equal(one.field, three.field) {
		t.Error("three ranks have another field than one")
	}
}
