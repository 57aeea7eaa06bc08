package results

import (
	"cmp"
	"fmt"
	"math"

	"jacobi/solver"
)

// Part is what one rank works out.
type Part struct {
	Steps    [2]Sum        `json:"steps"`   // squares of the steps along x and along y
	Sum      Sum           `json:"sum"`     // of the values, by their part of the mesh
	Squares  Sum           `json:"squares"` // of the values, by their part of the mesh; see rowSums
	Outside  Sum           `json:"outside"` // points outside the material, by their part of the mesh
	Min      extreme       `json:"min"`
	Max      extreme       `json:"max"`
	Flux     [walls]Sum    `json:"flux"`     // in the order of solver.Walls
	Through  [2][walls]Sum `json:"through"`  // what of these is in and, as negative numbers, out
	Source   Sum           `json:"source"`   // the integral of f
	Absorbed Sum           `json:"absorbed"` // that of -k2 u
	Regions  []*region     `json:"regions"`  // of fixed points; if they are not told apart, one that has their flux
	Top      []int         `json:"top"`      // by run of fixed points in the first row: see ends
	Bottom   []int         `json:"bottom"`   // the same for the first row of the next rank
	Begun    int           `json:"begun"`    // runs of fixed points without one above
	Dropped  bool          `json:"dropped"`  // there are too many runs for regions
}

// passed adds what passes the walls, and what f makes and k2 u absorbs, in another part.
func (t *Part) passed(o *Part) {
	for k := range t.Flux {
		t.Flux[k].Merge(&o.Flux[k])
		t.Through[0][k].Merge(&o.Through[0][k])
		t.Through[1][k].Merge(&o.Through[1][k])
	}
	t.Source.Merge(&o.Source)
	t.Absorbed.Merge(&o.Absorbed)
}

// extreme is a value and its point.
type extreme struct {
	Value float64 `json:"value"`
	IX    int     `json:"ix"`
	IY    int     `json:"iy"`
}

// take replaces e by another extreme that lies further in the direction of sign, or that comes first among equals.
func (e *extreme) take(o extreme, sign int) {
	if order := cmp.Or(sign*cmp.Compare(o.Value, e.Value), cmp.Compare(e.IY, o.IY), cmp.Compare(e.IX,
		o.IX)); order > 0 {
		*e = o
	}
}

// Results are the results of a run. Numbers beyond float64 are nil.
type Results struct {
	Energy *float64 `json:"energy"` // half of the integral of a |grad u|^2 + k2 u^2
	Min    Point    `json:"min"`
	Max    Point    `json:"max"`
	Mean   *float64 `json:"mean"`
	// Flux is the integral of a times the derivative out of the mesh over each wall, by its name; none for periodic
	// walls.
	Flux    map[string]*float64 `json:"flux"`
	Balance Balance             `json:"balance"`
	Regions []Region            `json:"regions"`           // of fixed points, by their first points
	Omitted string              `json:"omitted,omitempty"` // why there are no regions
	Errors  *Errors             `json:"errors,omitempty"`  // that the mesh leaves; nil where they are not known
	Matrix  *Matrix             `json:"matrix,omitempty"`  // nil without output.matrix
}

// Point is a point of the mesh with a value of the field.
type Point struct {
	Value float64 `json:"value"`
	IX    int     `json:"ix"`
	IY    int     `json:"iy"`
	X     float64 `json:"x"` // the distances from the first column and row, in the unit of grid.width
	Y     float64 `json:"y"`
}

// Region is a connected region of fixed points: each has another one beside, above or below it. In a problem with
// problem.regions or a drawing it is the fixed points of one name or colour.
type Region struct {
	Name   string   `json:"name,omitempty"`
	First  Point    `json:"first"`  // the first point, by rows; of an area between points, the one next to it
	Points int64    `json:"points"` // 0 for an area between points
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
	Flux   *float64 `json:"flux"` // the integral of a times the derivative into the region: its charge
	// Floating says that the value was found: the one of the flux that is given.
	Floating bool `json:"floating,omitempty"`
}

// Merge merges the parts of all ranks, in rank order.
func Merge(p Problem, parts []Part) (Results, error) {
	m := p.Mesh()
	total := Part{Min: extreme{Value: math.Inf(1)}, Max: extreme{Value: math.Inf(-1)}}
	for i := range parts {
		part := &parts[i]
		for k := range total.Steps {
			total.Steps[k].Merge(&part.Steps[k])
		}
		total.passed(part)
		total.Sum.Merge(&part.Sum)
		total.Squares.Merge(&part.Squares)
		total.Outside.Merge(&part.Outside)
		total.Min.take(part.Min, -1)
		total.Max.take(part.Max, 1)
		total.Begun += part.Begun
		total.Dropped = total.Dropped || part.Dropped || total.Begun > maxRuns
	}
	hx, hy := p.Spacings()
	at := func(value float64, ix, iy int) Point {
		return Point{value, ix, iy, float64(ix) * hx, float64(iy) * hy}
	}
	along := float64(total.Steps[0].Value()*hy/hx) + float64(total.Steps[1].Value()*hx/hy)
	inside := float64(p.Screening()*hx) * hy
	if p.Materials() != nil {
		inside = float64(hx * hy) // the screening is in Squares
	}
	mean, _ := p.Axis()
	cells := float64(solver.Intervals(m.NX, m.Walls.Left) * solver.Intervals(m.NY, m.Walls.Top))
	r := Results{
		Energy:  finite((along + float64(inside*total.Squares.Value())) / 2),
		Min:     at(total.Min.Value, total.Min.IX, total.Min.IY),
		Max:     at(total.Max.Value, total.Max.IX, total.Max.IY),
		Mean:    finite(total.Sum.Value() / (float64(cells*mean) - total.Outside.Value())),
		Flux:    map[string]*float64{},
		Regions: []Region{},
	}
	sides := []string{"left", "right", "top", "bottom"}
	for i, wall := range []solver.Wall{m.Walls.Left, m.Walls.Right, m.Walls.Top, m.Walls.Bottom} {
		if wall == solver.Periodic {
			sides[i] = ""
			continue
		}
		r.Flux[sides[i]] = finite(total.Flux[i].Value())
	}
	names := p.RegionNames()
	var list []*region
	var err error
	if names != nil {
		list, err = addNamed(names, parts)
	} else {
		list, err = mergeRegions(parts, total.Dropped)
	}
	if err != nil {
		return r, err
	}
	r.Balance = total.balance(sides, list)
	if total.Dropped {
		r.Omitted = fmt.Sprintf("more than %d runs of fixed points begin, in a row or in the mesh", maxRuns)
		return r, nil
	}
	for i, g := range list {
		name, floats := "", false
		if names != nil {
			name, floats = names[i], p.RegionFloats(i)
		}
		e := g.extent
		if e.Points == 0 {
			e = g.Between
		}
		if e.Points > 0 {
			r.Regions = append(r.Regions, Region{Name: name, First: at(e.First, e.IX, e.IY), Points: g.Points,
				Min: e.Min, Max: e.Max, Flux: finite(g.Flux.Value()), Floating: floats})
		}
	}
	sortRegions(r.Regions)
	return r, nil
}

// addNamed adds the parts of the regions with names, by their numbers.
func addNamed(names []string, parts []Part) (list []*region, err error) {
	for range names {
		list = append(list, &region{Flux: new(Sum)})
	}
	for rank, part := range parts {
		if len(part.Regions) != len(names) {
			return nil, fmt.Errorf("results of rank %d: %d regions, want %d", rank, len(part.Regions), len(names))
		}
		for i, g := range part.Regions {
			if g.Flux == nil {
				return nil, fmt.Errorf("results of rank %d: a region without flux", rank)
			}
			list[i].merge(g)
		}
	}
	return list, nil
}

// finite returns v, or nil if JSON has no such number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// mergeRegions joins the regions that go on on the next rank, or all of them if they are dropped.
func mergeRegions(parts []Part, dropped bool) ([]*region, error) {
	var all labels
	first := make([]int, len(parts)) // label of the first region of each part
	for i, part := range parts {
		first[i] = len(all.parent)
		for _, r := range part.Regions {
			if r.Flux == nil {
				return nil, fmt.Errorf("results of rank %d: a region without flux", i)
			}
			all.parent, all.regions = append(all.parent, len(all.parent)), append(all.regions, r)
		}
	}
	for i, part := range parts {
		next := (i + 1) % len(parts)
		if part.Bottom == nil || dropped {
			continue
		}
		if len(part.Bottom) != len(parts[next].Top) {
			return nil, fmt.Errorf("results: rank %d ends with %d runs of fixed points, and rank %d begins with %d", i,
				len(part.Bottom), next, len(parts[next].Top))
		}
		for k, place := range part.Bottom {
			other := parts[next].Top[k]
			if place < 0 || place >= len(part.Regions) || other < 0 || other >= len(parts[next].Regions) {
				return nil, fmt.Errorf("results: rank %d: region %d of %d", i, place, len(part.Regions))
			}
			all.join(first[i]+place, first[next]+other)
		}
	}
	if dropped {
		all.joinAll()
	}
	list, _ := all.numbered()
	return list, nil
}
