package problem

import (
	"context"
	"math"
)

const (
	outlineCells  = 512     // rows and columns of points that are looked at
	outlinePoints = 1 << 21 // points of their rows, which take time
	maxOutlines   = 4000
	leastContrast = 1.5 // of two coefficients between which there is an interface
)

// Outlines returns the lines around fixed points and points outside the material, and the interfaces of materials: x
// and y of both ends, in points of the mesh. It looks at evenly spread points. If there are too many lines to help, it
// returns none. It stops when ctx ends.
func (p *Problem) Outlines(ctx context.Context) (lines [][4]float64, err error) {
	if p.fixed.none() && !p.Porous() {
		return nil, nil
	}
	columns := sides(p.mesh.NX, outlineCells)
	rows := sides(p.mesh.NY, min(outlineCells, max(2, outlinePoints/p.mesh.NX)))
	var above []look
	down := make([]int, len(columns)) // by column: the place, from 1, of the line that reaches this row; 0 for none
	for j, iy := range rows {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		here, err := p.lookAt(iy, columns)
		if err != nil {
			return nil, err
		}
		top, bottom := edge(rows, j), edge(rows, j+1)
		for i := 1; i < len(here); i++ {
			switch {
			case !here[i].differs(here[i-1]):
				down[i] = 0
			case down[i] > 0:
				lines[down[i]-1][3] = bottom
			default:
				x := edge(columns, i)
				lines = append(lines, [4]float64{x, top, x, bottom})
				down[i] = len(lines)
			}
		}
		for i := 0; above != nil && i < len(here); i++ {
			if !here[i].differs(above[i]) {
				continue
			}
			from := i
			for i+1 < len(here) && here[i+1].differs(above[i+1]) {
				i++
			}
			lines = append(lines, [4]float64{edge(columns, from), top, edge(columns, i+1), top})
		}
		if len(lines) > maxOutlines {
			return nil, nil
		}
		above = here
	}
	return lines, nil
}

// look is how a point looks.
type look struct {
	fixed bool
	a     float64 // the coefficient; 0 for fixed points, which take that of their neighbours
}

func (l look) differs(o look) bool {
	if l.fixed || o.fixed {
		return l.fixed != o.fixed
	}
	return math.Max(l.a, o.a) >= leastContrast*math.Min(l.a, o.a) && l.a != o.a
}

// lookAt returns how points of row iy look.
func (p *Problem) lookAt(iy int, columns []int) ([]look, error) {
	iy, _ = p.mesh.Canonical(iy)
	m, err := p.material(iy)
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(columns))
	for i, ix := range columns {
		looks[i] = look{m.fixed != nil && m.fixed[ix], m.a[ix]}
	}
	return looks, nil
}

// sides returns at most most of n numbers, evenly spread, with both ends.
func sides(n, most int) []int {
	list := make([]int, min(n, most))
	for i := range list {
		list[i] = i * (n - 1) / (len(list) - 1)
	}
	return list
}

// edge returns the place before number i of a list: halfway to the one before, or half a point beyond an end.
func edge(list []int, i int) float64 {
	switch i {
	case 0:
		return -0.5
	case len(list):
		return float64(list[i-1]) + 0.5
	}
	return float64(list[i-1]+list[i]) / 2
}
