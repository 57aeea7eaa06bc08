package problem

import "jacobi/solver"

// Part is a connected part of the material: free points of a weighted problem, each of which conducts to another one
// beside, above or below it.
type Part struct {
	IY     int   `json:"iy"` // its first point, by rows
	IX     int   `json:"ix"`
	Points int64 `json:"points"`
	// Quarters of cells that belong to the points, of a loose problem.
	Quarters int64 `json:"quarters,omitempty"`
	Held     bool  `json:"held,omitempty"`   // a point conducts to one that keeps its value
	Hold     bool  `json:"hold,omitempty"`   // a screening or a Robin wall takes part in what determines its constant
	Driven   bool  `json:"driven,omitempty"` // a point has a source, or a wall lets something in
	DY       int   `json:"dy,omitempty"`     // the first such point
	DX       int   `json:"dx,omitempty"`
	Sides    uint8 `json:"sides,omitempty"` // that it touches, of those with values or heat transfers: see sideBit

	hold, total float64 // of the diagonals: what screenings and Robin walls contribute, and all
}

// sideBit returns the bit of a side, in the order of solver.Walls, in Part.Sides.
func sideBit(side int) uint8 { return 1 << side }

// add makes g the part of both.
func (g *Part) add(o Part) {
	if o.IY < g.IY || o.IY == g.IY && o.IX < g.IX {
		g.IY, g.IX = o.IY, o.IX
	}
	if o.Driven && (!g.Driven || o.DY < g.DY || o.DY == g.DY && o.DX < g.DX) {
		g.DY, g.DX = o.DY, o.DX
	}
	g.Points += o.Points
	g.Quarters += o.Quarters
	g.Held, g.Hold, g.Driven, g.Sides = g.Held || o.Held, g.Hold || o.Hold, g.Driven || o.Driven, g.Sides|o.Sides
	g.hold += o.hold
	g.total += o.total
}

// run is the points [lo, hi) of a part in a row, and what they are for themselves.
type run struct {
	lo, hi int
	part   Part
}

// runsOf returns the runs of row iy, whose held points are given.
func (p *Problem) runsOf(iy int, st *stencil, held []bool) (runs []run) {
	for ix, free := range st.free {
		if !free {
			continue
		}
		if n := len(runs); n == 0 || runs[n-1].hi < ix || !(st.east[ix-1] > 0) {
			runs = append(runs, run{lo: ix, part: Part{IY: iy, IX: ix}})
		}
		r := &runs[len(runs)-1]
		g := &r.part
		r.hi = ix + 1
		g.Points++
		if p.loose {
			g.Quarters += p.quarters(iy, ix)
		}
		g.Held = g.Held || held[ix]
		if st.b[ix] != 0 && !g.Driven {
			g.Driven, g.DY, g.DX = true, iy, ix
		}
		if st.hold[ix] > 0 {
			g.Hold = true
			g.hold += float64(st.hold[ix] * st.diagonal[ix])
		}
		g.total += st.diagonal[ix]
	}
	for i := range runs {
		runs[i].part.Sides = p.sidesOf(iy, runs[i], st)
	}
	return runs
}

// sidesOf returns the sides with values or heat transfers that a run touches.
func (p *Problem) sidesOf(iy int, r run, st *stencil) (sides uint8) {
	lo, hi := p.mesh.InteriorColumns()
	in := p.mesh.Interior()
	touch := func(k int, on bool, face float64) {
		if s := &p.sides[k]; on && (s.robin() || s.wall == solver.Dirichlet && face > 0) {
			sides |= sideBit(k)
		}
	}
	touch(west, r.lo == lo, st.east[0])
	touch(east, r.hi == hi, st.east[max(0, hi-1)])
	for ix := r.lo; ix < r.hi && (iy == in.Lo || iy == in.Hi-1); ix++ {
		touch(north, iy == in.Lo, st.above.south[ix])
		touch(south, iy == in.Hi-1, st.south[ix])
	}
	return sides
}

// patch is the points [lo, hi) of a row, and the number of their part.
type patch struct{ lo, hi, part int32 }

// parts finds the connected parts of rows, which are added from the top downwards.
type parts struct {
	keep     bool // the patches of parts that are not held
	parent   []int32
	list     []Part  // of roots
	top, now []patch // of the first row and of the newest one
	begun    bool
	patches  [][]patch // by row, of parts that were not held when they were looked at last
	count    int       // of patches
	heldNow  bool      // all parts of the newest row are known to be held
	done     []Part    // those that cannot grow any more; without keep
}

// remembered bounds the parts, and the patches, that are remembered before those that do not matter are forgotten.
const remembered = 1 << 22

// add adds the next row. One that is not the rank's own only says which parts go on there.
func (s *parts) add(row surveyed, mesh solver.Mesh, own bool) {
	above, at := s.now, 0
	s.now = make([]patch, 0, len(row.runs))
	for _, r := range row.runs {
		label := int32(-1)
		for at < len(above) && int(above[at].hi) <= r.lo {
			at++
		}
		for k := at; k < len(above) && int(above[k].lo) < r.hi; k++ {
			if !conducts(row.north[max(r.lo, int(above[k].lo)):min(r.hi, int(above[k].hi))]) {
				continue
			}
			if label >= 0 {
				s.join(label, above[k].part)
			}
			label = above[k].part
		}
		if !own {
			r.part = Part{IY: r.part.IY, IX: r.part.IX}
		}
		if label < 0 {
			label = int32(len(s.parent))
			s.parent, s.list = append(s.parent, label), append(s.list, r.part)
		} else {
			s.list[s.root(label)].add(r.part)
		}
		s.now = append(s.now, patch{int32(r.lo), int32(r.hi), label})
	}
	lo, hi := mesh.InteriorColumns()
	if n := len(s.now); row.closed && n > 0 && int(s.now[0].lo) == lo && int(s.now[n-1].hi) == hi {
		s.join(s.now[0].part, s.now[n-1].part)
	}
	if !s.begun {
		s.top, s.begun = s.now, true
	}
	if own && s.keep {
		s.patches = append(s.patches, s.now)
		s.count += len(s.now)
	}
	s.heldNow = true
	for _, c := range s.now {
		s.heldNow = s.heldNow && s.list[s.root(c.part)].Held
	}
	if len(s.parent)+s.count > remembered+8*mesh.NX {
		s.forget()
	}
}

// conducts reports whether one of the faces does.
func conducts(faces []float64) bool {
	for _, c := range faces {
		if c > 0 {
			return true
		}
	}
	return false
}

// repeat adds a row that is the same as the newest one, whose parts are all held: it tells nothing new.
func (s *parts) repeat() {
	if s.keep {
		s.patches = append(s.patches, nil)
	}
}

func (s *parts) root(label int32) int32 {
	for s.parent[label] != label {
		s.parent[label] = s.parent[s.parent[label]]
		label = s.parent[label]
	}
	return label
}

// join makes two parts one.
func (s *parts) join(a, b int32) {
	if a, b = s.root(a), s.root(b); a != b {
		a, b = min(a, b), max(a, b)
		s.parent[b] = a
		s.list[a].add(s.list[b])
	}
}

// forget numbers anew the parts that can still grow, and those with patches. It drops the patches of parts that are
// held.
func (s *parts) forget() {
	number := make([]int32, len(s.parent)) // of roots, and one more; 0 for what is forgotten
	var list []Part
	renumber := func(row []patch) {
		for i, c := range row {
			root := s.root(c.part)
			if number[root] == 0 {
				list = append(list, s.list[root])
				number[root] = int32(len(list))
			}
			row[i].part = number[root] - 1
		}
	}
	s.count = 0
	for iy, row := range s.patches {
		var left []patch
		for _, c := range row {
			if !s.list[s.root(c.part)].Held {
				left = append(left, c)
			}
		}
		renumber(left)
		s.patches[iy] = left
		s.count += len(left)
	}
	s.now = append([]patch(nil), s.now...) // not the memory of its patches, nor of top
	renumber(s.now)
	s.top = append([]patch(nil), s.top...)
	renumber(s.top)
	for label := range s.parent {
		if s.parent[label] == int32(label) && number[label] == 0 {
			s.done = append(s.done, s.list[label])
		}
	}
	s.list, s.parent = list, make([]int32, len(list))
	for i := range s.parent {
		s.parent[i] = int32(i)
	}
}
