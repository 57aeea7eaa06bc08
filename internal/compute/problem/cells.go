package problem

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/npy"
	"jacobi/internal/base/parallel"
	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// An array of one row and one column less than the mesh has the values of cells, which lie between its points. They are
// areas of the plane, as the pixels of a picture are. Between periodic sides there is one period of them.

// openArray opens the array of a part: values at points, which stay in the file, or of cells, which are read. They are
// truth values if truth is set, else float64.
func (p *Problem) openArray(q *part, truth bool) error {
	points, cells := p.mesh, p.mesh
	nx, ny := intervals(p.mesh)
	points.DType, cells.DType = solver.Float64, solver.Float64
	cells.NX, cells.NY = int(nx), int(ny)
	shapeOf := func(m solver.Mesh) string { return fmt.Sprintf("(%d, %d)", m.NY, m.NX) }
	switch h := headerOf(q.text); {
	case h.Shape == "" || fits(h, shapeOf(points)): // opening it says what is wrong
		var err error
		q.file, err = openNPY(q.text, points, false, p.sized(bothKeys))
		return err
	case fits(h, shapeOf(cells)):
		return p.readCells(q, cells, truth)
	default:
		return misfit(h, 2, fmt.Sprintf("%s for points or %s for cells between them (%s)", shapeOf(points),
			shapeOf(cells), p.sized(bothKeys)))
	}
}

// bothKeys are those of the numbers of points.
const bothKeys = "grid.ny, grid.nx"

// sized returns keys of numbers of points with the key of the file from which they come, for errors about others.
func (p *Problem) sized(keys string) string {
	if from := p.config.Grid.From; from != "" {
		keys += ", from " + from
	}
	return keys
}

// headerOf returns the header of an array file, without a shape if it is none.
func headerOf(path string) npy.Header {
	f, err := regular.Open(path)
	if err != nil {
		return npy.Header{}
	}
	defer f.Close()
	h, err := npy.ReadHeader(f)
	if err != nil {
		return npy.Header{}
	}
	return h
}

// readCells reads the array of a part with as many cells as the mesh m has points.
func (p *Problem) readCells(q *part, m solver.Mesh, truth bool) (err error) {
	size := int64(8)
	if truth {
		size = 1
	}
	need := size * int64(m.NX) * int64(m.NY)
	if need > maxPictureBytes {
		side := int(math.Sqrt(float64(maxPictureBytes / size)))
		return fmt.Errorf("%d x %d cells take %d MiB; at most %d MiB are allowed, which is %d x %d cells", m.NX, m.NY,
			need>>20, maxPictureBytes>>20, side, side)
	}
	if need >= largePicture {
		if err := configs.CheckMemory(need); err != nil {
			return fmt.Errorf("%d x %d cells: %w", m.NX, m.NY, err)
		}
	}
	n, err := openNPY(q.text, m, false, p.sized(bothKeys))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	across, down := axes(p.mesh)
	q.read = n.blocks
	p.cells += need
	if truth {
		marks := make([]uint8, m.NX*m.NY)
		err := parallel.Each(m.NY, func(iy int) error {
			row := make([]bool, m.NX)
			if err := n.readBools(row, iy); err != nil {
				return fmt.Errorf("row %d: %w", iy, err)
			}
			for ix, on := range row {
				if on {
					marks[iy*m.NX+ix] = 1
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		r := &raster{newGrid(m.NX, m.NY, marks, across, down, bytes.Equal), n.blocks, nil}
		q.node = r.condition([]bool{false, true})
		return nil
	}
	values := make([]float64, m.NX*m.NY)
	err = parallel.Each(m.NY, func(iy int) error {
		row := make([]byte, m.RowBytes())
		if err := n.read(row, iy, 0); err != nil {
			return fmt.Errorf("row %d: %w", iy, err)
		}
		solver.Float64.Decode(values[iy*m.NX:][:m.NX], row)
		return nil
	})
	if err != nil {
		return err
	}
	q.node = valuesOf(newGrid(m.NX, m.NY, values, across, down, slices.Equal))
	return nil
}

// valuesOf returns the values of cells.
func valuesOf(cells *grid[float64]) node {
	least, most, nan := math.Inf(1), math.Inf(-1), false
	for _, v := range cells.pixels {
		if v != v {
			nan = true
			continue
		}
		least, most = min(least, v), max(most, v)
	}
	return cells.node(node{
		spot: func(s *spot) float64 { return s.decide(cells.at(s)) },
		limit: func(b box) bounds {
			if nan {
				return anything(true)
			}
			out, first, n := bounds{lo: math.Inf(1), hi: math.Inf(-1)}, 0.0, 0
			cells.each(b, func(v float64, _, _ int) bool {
				if n++; n == 1 {
					first = v
				}
				out.jumps = out.jumps || v != first
				out.lo, out.hi = min(out.lo, v), max(out.hi, v)
				return !(out.lo == least && out.hi == most && out.jumps)
			})
			return out
		},
	})
}

// cellsOf returns the cells whose values those of a node are; nil for another one.
func cellsOf(n node) *grid[float64] {
	cells, _ := n.drawn.(*grid[float64])
	return cells
}

// cellsIn calls f with the values and the middles of the cells of some columns and rows. Between periodic sides they go
// on as they begin; beyond other sides there are none.
func cellsIn(cells *grid[float64], columns, rows []int, f func(v float64, middle spot) error) error {
	for _, y := range rows {
		for _, x := range columns {
			middle := spot{x: float64(x) + 0.5, y: float64(y) + 0.5}
			if cells.across.periodic {
				x = (x + cells.width) % cells.width
			}
			if cells.down.periodic {
				y = (y + cells.height) % cells.height
			}
			if x < 0 || x >= cells.width || y < 0 || y >= cells.height {
				continue
			}
			if err := f(cells.row(y)[x], middle); err != nil {
				return err
			}
		}
	}
	return nil
}

// meanOf returns the mean of the values of the cells of some columns and rows around a place, by their parts of its
// surroundings.
func (p *Problem) meanOf(cells *grid[float64], columns, rows []int, place spot) float64 {
	sum, n := 0.0, 0.0
	_ = cellsIn(cells, columns, rows, func(v float64, middle spot) error { // f returns no error
		r := p.turn.radius(spot{x: halfway(place.x, middle.x), y: halfway(place.y, middle.y)})
		sum, n = sum+float64(v*r), n+r
		return nil
	})
	return sum / n
}

// cellFaces works out the faces of row iy between cells of a coefficient, to the next column or else to the next row.
// The two cells beside a face conduct side by side.
func (p *Problem) cellFaces(cells *grid[float64], iy int, x bool, dst []float64) error {
	lo, hi := p.columnsOfFaces(x)
	for ix := lo; ix < hi; ix++ {
		columns, rows, place := []int{ix}, []int{iy - 1, iy}, spot{x: float64(ix) + 0.5, y: float64(iy)}
		if !x {
			columns, rows, place = []int{ix - 1, ix}, []int{iy}, spot{x: float64(ix), y: float64(iy) + 0.5}
		}
		err := cellsIn(cells, columns, rows, func(v float64, _ spot) error { return p.checkCoefficient(v, place) })
		if err != nil {
			return err
		}
		dst[ix] = p.meanOf(cells, columns, rows, place)
	}
	wrapFaces(p, x, dst)
	return nil
}

// cellSquares sets dst to the means of cells over the squares of the points of row iy from column col on.
func (p *Problem) cellSquares(cells *grid[float64], iy, col int, dst []float64) {
	for i := range dst {
		place := spot{x: float64(col + i), y: float64(iy)}
		dst[i] = p.meanOf(cells, []int{col + i - 1, col + i}, []int{iy - 1, iy}, place)
	}
}
