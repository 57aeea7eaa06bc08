package outputs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"jacobi/configs"
	"jacobi/internal/base/parallel"
	"jacobi/internal/compute/problem"
	"jacobi/solver"
)

// mostPlaces bounds the places along each side, and mostProbed the points of probes that are among them.
const (
	mostPlaces = 257
	mostProbed = 64
)

// Places are where fields on several meshes are compared: the points of the coarsest mesh, or evenly chosen ones of
// them where there are more than mostPlaces along a side; and the lines through the points of probes, unless these are
// more than mostProbed.
type Places struct {
	x, y   []float64 // distances from the first column and the first row, ascending
	probes []configs.Probe
}

// PlacesOf returns the places of p's problem whose coarsest mesh is g. probes is output.probes.
func PlacesOf(p *problem.Problem, g configs.Grid, probes string) (*Places, error) {
	list, err := configs.ParseProbes(probes, p.Mesh())
	if err != nil {
		return nil, err
	}
	walls := p.Mesh().Walls
	along := func(points int, wall solver.Wall, length float64) (all []float64) {
		n := solver.Intervals(points, wall)
		every := (n + mostPlaces - 2) / (mostPlaces - 1)
		for i := 0; i <= n; i += every {
			all = append(all, float64(i)*(length/float64(n)))
		}
		return all
	}
	places := &Places{x: along(g.NX, walls.Left, g.Width), y: along(g.NY, walls.Top, g.Height)}
	count := 0
	for _, probe := range list {
		count += len(probe.Points)
	}
	if count > mostProbed {
		return places, nil
	}
	hx, hy := p.Spacings()
	for _, probe := range list {
		for _, at := range probe.Points {
			places.x, places.y = append(places.x, float64(at.IX)*hx), append(places.y, float64(at.IY)*hy)
		}
	}
	slices.Sort(places.x)
	slices.Sort(places.y)
	places.x, places.y, places.probes = slices.Compact(places.x), slices.Compact(places.y), list
	return places, nil
}

// eachProbed calls do with the place of each point of a probe, among the values.
func (p *Places) eachProbed(hx, hy float64, do func(place int, probe string)) {
	for _, probe := range p.probes {
		for _, at := range probe.Points {
			column, _ := slices.BinarySearch(p.x, float64(at.IX)*hx)
			line, _ := slices.BinarySearch(p.y, float64(at.IY)*hy)
			do(line*len(p.x)+column, probe.Name)
		}
	}
}

// placeValues are the values of a field at places, row by row. Rough bounds what interpolation between points may have
// added to them; it is 0 at points of the mesh. Both are NaN outside the material.
type placeValues struct{ values, rough []float64 }

// largestDifferences returns the largest difference of each field from the next one, at the places of all, less what
// interpolation may have added to any of them.
func largestDifferences(fields []*placeValues) []float64 {
	largest := make([]float64, len(fields)-1)
	for i := range fields[0].values {
		rough := 0.0
		for _, f := range fields {
			rough += f.rough[i]
		}
		for k, next := range fields[1:] {
			if d := math.Abs(fields[k].values[i]-next.values[i]) - rough; d > largest[k] { // not NaN
				largest[k] = d
			}
		}
	}
	return largest
}

// reach is the number of points from which the value between two of them is found: cubic through the middle four. The
// outer two tell whether it is smooth there.
const reach = 6

// between is how the value at a place along a line follows from those at n points from first on.
type between struct {
	first, n int
	weights  [reach]float64
}

// onPoint is how near to a point, in spacings, a place is at it.
const onPoint = 1e-6

// newBetween returns how the value at t, in spacings from the first of m points, is found.
func newBetween(t float64, m int) (b between) {
	if near := math.Round(t); math.Abs(t-near) < onPoint || m < 4 {
		return between{first: int(near), n: 1, weights: [reach]float64{1}}
	}
	b.n = min(reach, m)
	b.first = min(max(int(t)-2, 0), m-b.n)
	inner := min(max(int(t)-1, 0), m-4)
	for i := range 4 {
		w := 1.0
		for j := range 4 {
			if j != i {
				w *= (t - float64(inner+j)) / float64(i-j)
			}
		}
		b.weights[inner-b.first+i] = w
	}
	return b
}

// of returns the value from those at the points, and a bound on how far it may be off. Second differences are alike
// where the field is smooth, and differ by the kink where it has one.
func (b between) of(at func(i int) float64) (value, rough float64) {
	if b.n == 1 {
		return at(0), 0
	}
	least, most := math.Inf(1), math.Inf(-1)
	for i := range b.n {
		value += float64(b.weights[i] * at(i))
		if i >= 2 {
			second := at(i) - float64(2*at(i-1)) + at(i-2)
			least, most = min(least, second), max(most, second)
		}
	}
	return value, (most - least) / 4
}

// placed is how a mesh gives values at places.
type placed struct {
	*Places
	mesh           solver.Mesh
	columns, lines []between
	rows           []int                           // that are read, ascending
	outside        func(lo int, rows []byte) error // gives points outside the material NaN; nil where there are none
	own            []byte                          // this rank's rows: the number in rows, and 2 values a column
}

func (p *Places) on(m solver.Mesh, hx, hy float64) *placed {
	q := &placed{Places: p, mesh: m}
	for _, x := range p.x {
		q.columns = append(q.columns, newBetween(x/hx, m.NX))
	}
	for _, y := range p.y {
		line := newBetween(y/hy, m.NY)
		q.lines = append(q.lines, line)
		for i := range line.n {
			q.rows = append(q.rows, line.first+i)
		}
	}
	slices.Sort(q.rows)
	q.rows = slices.Compact(q.rows)
	return q
}

// newPlaces returns how this rank's rows give values at the places; nil without places.
func (o *Outputs) newPlaces() *placed {
	if o.Places == nil {
		return nil
	}
	hx, hy := o.Problem.Spacings()
	p := o.Places.on(o.Layout.Mesh, hx, hy)
	if o.Problem.Porous() {
		p.outside = (inside{problem: o.Problem}).mask
	}
	return p
}

// add is an output.Use: it keeps the values at the columns of the places, of each row that a place needs.
func (p *placed) add(lo int, rows []byte) error {
	width, size := p.mesh.RowBytes(), p.mesh.DType.Size()
	from, _ := slices.BinarySearch(p.rows, lo)
	for i := from; i < len(p.rows) && (p.rows[i]-lo)*width < len(rows); i++ {
		row := rows[(p.rows[i]-lo)*width:][:width]
		if p.outside != nil {
			row = slices.Clone(row)
			if err := p.outside(p.rows[i], row); err != nil {
				return err
			}
		}
		p.own = binary.LittleEndian.AppendUint32(p.own, uint32(i))
		for _, c := range p.columns {
			var near [reach]float64
			p.mesh.DType.Decode(near[:c.n], row[c.first*size:])
			value, rough := c.of(func(i int) float64 { return near[i] })
			p.own = binary.LittleEndian.AppendUint64(p.own, math.Float64bits(value))
			p.own = binary.LittleEndian.AppendUint64(p.own, math.Float64bits(rough))
		}
	}
	return nil
}

// gatherPlaces returns, on rank 0, the values of the field at the places; nil without places. All ranks call it.
func (o *Outputs) gatherPlaces(ctx context.Context, p *placed) (*placeValues, error) {
	if p == nil {
		return nil, nil
	}
	width := 2 * len(p.x)
	parts, err := o.Comm.Gather(ctx, "places", p.own)
	if err != nil || o.id.Rank != 0 {
		return nil, err
	}
	rows := make([][]float64, len(p.rows))
	for rank, part := range parts {
		for len(part) > 0 {
			if len(part) < 4+8*width || int(binary.LittleEndian.Uint32(part)) >= len(rows) {
				return nil, fmt.Errorf("values at places: rank %d has sent %d bytes", rank, len(part))
			}
			values := make([]float64, width)
			rows[binary.LittleEndian.Uint32(part)] = values
			solver.Float64.Decode(values, part[4:4+8*width])
			part = part[4+8*width:]
		}
	}
	if i := slices.IndexFunc(rows, func(r []float64) bool { return r == nil }); i >= 0 {
		return nil, fmt.Errorf("values at places: no rank has sent row %d", p.rows[i])
	}
	return p.values(rows), nil
}

// values returns the values at the places from those of the rows that were read.
func (p *placed) values(rows [][]float64) *placeValues {
	n := len(p.x)
	v := &placeValues{values: make([]float64, len(p.lines)*n), rough: make([]float64, len(p.lines)*n)}
	_ = parallel.Each(len(p.lines), func(i int) error {
		line := p.lines[i]
		first, _ := slices.BinarySearch(p.rows, line.first)
		for k := range n {
			across := 0.0
			value, rough := line.of(func(i int) float64 {
				across = max(across, rows[first+i][2*k+1])
				return rows[first+i][2*k]
			})
			v.values[i*n+k], v.rough[i*n+k] = value, rough+across
		}
		return nil
	})
	return v
}
