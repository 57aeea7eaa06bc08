package output

// The longer side of the mesh in a picture has between about minPixels and maxPixels pixels. It is at most maxAspect
// times the shorter side, so that a very wide or very tall mesh remains visible.
const (
	minPixels = 800
	maxPixels = 1280
	maxAspect = 6
	// The same for the frames of an animation.
	minFramePixels = 250
	maxFramePixels = 400
)

// axis maps the points along one side of a mesh to pixels. It is the number of points and of pixels in one cell along
// that side; one of the two is 1. The last cell may have fewer points.
type axis struct{ points, pixels int }

// cells returns the number of cells along a side of n points.
func (a axis) cells(n int) int { return (n + a.points - 1) / a.points }

// length returns the length in pixels of a side of n points.
func (a axis) length(n int) int { return a.cells(n) * a.pixels }

// scale maps a mesh to a picture. Both axes are the same unless the ratio of the mesh's sides exceeds maxAspect.
type scale struct{ x, y axis }

func newScale(nx, ny int) scale { return newScaleIn(nx, ny, minPixels, maxPixels) }

// newScaleIn is newScale for a longer side of about least to most pixels.
func newScaleIn(nx, ny, least, most int) scale {
	long := max(nx, ny)
	a := axis{1, 1}
	if long > most {
		a.points = (long + most - 1) / most
	} else {
		a.pixels = max(1, min((least+long-1)/long, most/long))
	}
	s := scale{a, a}
	if shortest := a.length(long) / maxAspect; a.length(min(nx, ny)) < shortest {
		b := stretched(min(nx, ny), shortest)
		if nx < ny {
			s.x = b
		} else {
			s.y = b
		}
	}
	return s
}

// stretched returns the axis on which n points take at least this many pixels and less than twice as many.
func stretched(n, pixels int) axis {
	if n >= pixels {
		return axis{n / pixels, 1}
	}
	return axis{1, (pixels + n - 1) / n}
}

// pixel returns the pixel of the coordinate v on a side of n points; v is 0 at the first point and 1 at the last.
func (a axis) pixel(v float64, n int) int {
	return int((v*float64(n-1) + 0.5) * float64(a.pixels) / float64(a.points))
}
