package output

// The area of a picture that shows the mesh, in pixels along its longer side: between about minPixels and maxPixels,
// and at most flattest times the shorter side, so that a very wide or very tall mesh still shows something.
const (
	minPixels = 800
	maxPixels = 1280
	flattest  = 6
)

// axis says how the points along one side of a mesh become pixels: a cell has so many points and so many pixels
// along it, one of which is 1. The last cell may have fewer points.
type axis struct{ points, pixels int }

// cells returns the number of cells along a side of n points.
func (a axis) cells(n int) int { return (n + a.points - 1) / a.points }

// length returns the pixels of a side of n points.
func (a axis) length(n int) int { return a.cells(n) * a.pixels }

// scale is how a mesh becomes a picture. Both axes are the same unless the mesh is flatter than flattest.
type scale struct{ x, y axis }

func newScale(nx, ny int) scale {
	long := max(nx, ny)
	a := axis{1, 1}
	if long > maxPixels {
		a.points = (long + maxPixels - 1) / maxPixels
	} else {
		a.pixels = max(1, min((minPixels+long-1)/long, maxPixels/long))
	}
	s := scale{a, a}
	if shortest := a.length(long) / flattest; a.length(min(nx, ny)) < shortest {
		b := stretched(min(nx, ny), shortest)
		if nx < ny {
			s.x = b
		} else {
			s.y = b
		}
	}
	return s
}

// stretched returns the axis along which n points get at least so many pixels, and less than twice as many.
func stretched(n, pixels int) axis {
	if n >= pixels {
		return axis{n / pixels, 1}
	}
	return axis{1, (pixels + n - 1) / n}
}

// pixel returns where in a side of n points the coordinate v, from 0 at the first point to 1 at the last, lies.
func (a axis) pixel(v float64, n int) int {
	return int((v*float64(n-1) + 0.5) * float64(a.pixels) / float64(a.points))
}
