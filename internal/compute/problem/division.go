package problem

import "math"

// division is a straight edge that divides a pixel between two colours. Places are measured in pixels, from the top
// left corner of the pixel.
type division struct {
	nx, ny, d      float64 // the edge is where nx x + ny y = d; |nx| + |ny| = 1
	before, beyond uint8   // the colours where nx x + ny y is less than d, and more
}

// closeness is how near to the edge of a division, in pixels, a place touches both of its colours.
const closeness = 0x1p-30

// at returns how far a place lies beyond the edge.
func (e *division) at(x, y float64) float64 { return float64(e.nx*x) + float64(e.ny*y) - e.d }

// each calls f with the colours that a box within the pixel touches, until it returns false.
func (e *division) each(b box, f func(colour uint8) bool) bool {
	if e.nx < 0 {
		b.left, b.right = b.right, b.left
	}
	if e.ny < 0 {
		b.top, b.bottom = b.bottom, b.top
	}
	if e.at(b.left, b.top) <= closeness && !f(e.before) {
		return false
	}
	return e.at(b.right, b.bottom) < -closeness || f(e.beyond)
}

// corner returns the colour at a corner of the pixel.
func (e *division) corner(x, y float64) uint8 {
	if e.at(x, y) > 0 {
		return e.beyond
	}
	return e.before
}

// coverage is what the first of two colours has of nine pixels, by their rows and columns.
type coverage [3][3]float64

// divide returns the edge in one of the pixels. It leaves the colours their shares of that pixel. Its slope is the one
// of six differences of whole rows and columns with which the same edge in all nine pixels has the least squares of
// errors (Pilliod and Puckett, Journal of Computational Physics 199, 2004: ELVIRA). Straight edges are exact.
func (s *coverage) divide(column, row int) (best division) {
	var rows, columns [3]float64
	for j, list := range s {
		for i, v := range list {
			rows[j] += v
			columns[i] += v
		}
	}
	least := math.Inf(1)
	try := func(nx, ny float64) {
		size := math.Abs(nx) + math.Abs(ny)
		e := division{nx: nx / size, ny: ny / size}
		e.d = e.offset(s[row][column])
		sum := 0.0
		for j, list := range s {
			for i, v := range list {
				off := e.share(float64(i-column), float64(j-row)) - v
				sum += float64(off * off)
			}
		}
		if sum < least {
			least, best = sum, e
		}
	}
	alongX := peak(rows) > math.Abs(columns[2]-columns[0]) // a line thinner than a pixel
	alongY := peak(columns) > math.Abs(rows[2]-rows[0])
	if alongX || !alongY {
		for _, slope := range slopes(columns) {
			try(-slope, sign(rows))
		}
	}
	if alongY || !alongX {
		for _, slope := range slopes(rows) {
			try(sign(columns), -slope)
		}
	}
	return best
}

// slopes returns those of an edge across three columns, or rows, with these shares.
func slopes(of [3]float64) [3]float64 {
	return [3]float64{(of[2] - of[0]) / 2, of[1] - of[0], of[2] - of[1]}
}

// sign is 1 if the share does not grow from the first to the last of three rows, or columns, else -1.
func sign(of [3]float64) float64 { return 1 - float64(2*truth(of[2] > of[0])) }

// peak returns by how much the middle one of three rows, or columns, has more than both others, or less.
func peak(of [3]float64) float64 {
	return max(of[1]-max(of[0], of[2]), min(of[0], of[2])-of[1], 0)
}

// offset returns d with which the first colour has a share of the pixel.
func (e *division) offset(share float64) float64 {
	small := min(math.Abs(e.nx), math.Abs(e.ny))
	large, part := 1-small, min(share, 1-share)
	d := float64(large*part) + float64(small/2)
	if double := float64(2 * part); float64(double*large) < small {
		d = math.Sqrt(float64(float64(double*small) * large))
	}
	if share > 0.5 {
		d = 1 - d
	}
	return d + min(e.nx, 0) + min(e.ny, 0)
}

// share returns the part of the first colour in the pixel that many columns and rows further.
func (e *division) share(columns, rows float64) float64 {
	small := min(math.Abs(e.nx), math.Abs(e.ny))
	large, d := 1-small, -e.at(columns, rows)-min(e.nx, 0)-min(e.ny, 0)
	part := func(d float64) float64 {
		switch {
		case d <= 0:
			return 0
		case d < small:
			return float64(d*d) / float64(float64(2*small)*large)
		}
		return (d - float64(small/2)) / large
	}
	if d > 0.5 {
		return 1 - part(1-d)
	}
	return part(d)
}
