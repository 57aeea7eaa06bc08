package problem

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Islands are what is known of the parts of the material that are not held: no point of them conducts to one that keeps
// its value.
//
//   - Where nothing drives such a part, its solution is 0. It is left out, as what lies outside the material is, or,
//     where a screening or a Robin wall holds it, keeps the value 0.
//   - A driven one is solved. Its constant follows from the sum of its equations.
//
// Of an operator that is not weighted the material has one part.
type Islands struct {
	Tally
	Driven []Part    // by their first points
	Places [][]int32 // by rank: what becomes of Survey.Parts
}

// What becomes of a part that is not driven. Driven parts have their numbers.
const (
	held  = -1 // it is solved
	out   = -2 // it is left out
	still = -3 // it keeps the value 0
)

// Tally is what is known of parts that do not matter one by one.
type Tally struct {
	Held    bool     `json:"held,omitempty"` // some are held
	Idle    [2]Count `json:"idle"`           // those that are neither held nor driven, the second ones with a hold
	Touched uint8    `json:"touched,omitempty"`
	Joined  uint8    `json:"joined,omitempty"` // the first of two opposite sides, if a part touches both

	first *Part // of Idle
	weak  *Part // one that is held less than rounding leaves; known to who has looked at all rows
}

// Count is a number of parts and that of their points.
type Count struct {
	Parts  int64 `json:"parts"`
	Points int64 `json:"points"`
}

// merge adds what another tally has.
func (t *Tally) merge(o Tally) {
	t.Held, t.Touched, t.Joined = t.Held || o.Held, t.Touched|o.Touched, t.Joined|o.Joined
	for i, c := range o.Idle {
		t.Idle[i].Parts += c.Parts
		t.Idle[i].Points += c.Points
	}
	t.first, t.weak = cmp.Or(t.first, o.first), cmp.Or(t.weak, o.weak)
}

// add adds a whole part, and returns what becomes of it if it is not driven.
func (t *Tally) add(g *Part, leastHold float64) int32 {
	t.Touched |= g.Sides
	for _, side := range []int{west, north} {
		if both := sideBit(side) | sideBit(side+1); g.Sides&both == both {
			t.Joined |= sideBit(side)
		}
	}
	if !g.Held && g.Hold && g.hold < leastHold*g.total && (t.weak == nil || g.Driven && !t.weak.Driven) {
		t.weak = g
	}
	switch {
	case g.Held:
		t.Held = true
		return held
	case g.Driven:
		return held // or its number
	case g.Hold:
		t.Idle[1].Parts++
		t.Idle[1].Points += g.Points
		return still
	}
	t.Idle[0].Parts++
	t.Idle[0].Points += g.Points
	t.first = cmp.Or(t.first, g)
	return out
}

// Survey is what rows of a problem tell of the parts of the material.
type Survey struct {
	Maxima `json:"-"`
	Fixed  int64 `json:"-"` // what CountFixed returns for the rows
	Tally
	Parts []Part `json:"parts,omitempty"` // those that may go on beyond the rows, and driven ones
	// By run of the first row, and of the row below the last one: the place in Parts. There are no rows without Any.
	Top    []int32 `json:"top,omitempty"`
	Bottom []int32 `json:"bottom,omitempty"`
	Any    bool    `json:"any,omitempty"`
	Totals *Totals `json:"totals,omitempty"` // of a loose problem

	found *parts
	place []int32 // by part of found: its place in Parts, or what becomes of it
}

// mayFloat reports whether there may be parts of the material that are not held.
func (p *Problem) mayFloat() bool { return p.weighted && (p.porous || p.unfixed()) }

// Maxima returns those of rows [lo, hi). It stops when ctx ends.
func (p *Problem) Maxima(ctx context.Context, lo, hi int) (m Maxima, err error) {
	if !p.weighted {
		m.Source, err = p.MaxSource(ctx, lo, hi)
		return m, err
	}
	s, err := p.survey(ctx, lo, hi, nil)
	return s.Maxima, err
}

// Survey works out the maxima of rows [lo, hi), counts their fixed points and, if some material may not be held, finds
// the parts of it in them, and where these lie. It adds up what drives a loose problem. It stops when ctx ends.
func (p *Problem) Survey(ctx context.Context, lo, hi int) (s Survey, err error) {
	switch {
	case p.mayFloat():
		s, err = p.survey(ctx, lo, hi, &parts{keep: true})
	case p.weighted:
		s, err = p.survey(ctx, lo, hi, nil)
	default:
		if s.Source, err = p.MaxSource(ctx, lo, hi); err == nil {
			s.Fixed, err = p.CountFixed(ctx, lo, hi)
		}
	}
	if err == nil {
		s.Totals, err = p.totals(ctx, lo, hi)
	}
	return s, err
}

// surveyed is a row that was looked at.
type surveyed struct {
	iy    int
	again bool // it is the same as the one above
	Maxima
	fixed  int64
	runs   []run
	north  []float64 // the faces to the row above
	closed bool      // periodic columns conduct to each other
}

// survey looks at a row, and at its runs if they are wanted.
func (p *rows) survey(iy int, runs bool) (r surveyed, err error) {
	st, err := p.stencil(iy)
	if err != nil {
		return r, err
	}
	here, err := p.material(iy)
	if err != nil {
		return r, err
	}
	r = surveyed{iy: iy, fixed: p.countInner(here.fixed), Maxima: p.maximaOf(iy, st)}
	if runs {
		held, err := p.heldIn(iy, st, here)
		if err != nil {
			return r, err
		}
		_, hi := p.mesh.InteriorColumns()
		r.runs, r.north = p.runsOf(iy, st, held), slices.Clone(st.above.south)
		r.closed = p.mesh.PeriodicColumns() && st.east[hi-1] > 0
	}
	return r, nil
}

// survey is Survey of a weighted problem, which adds rows to found if that is not nil.
func (p *Problem) survey(ctx context.Context, lo, hi int, found *parts) (s Survey, err error) {
	interior := p.mesh.Interior()
	lo, hi = max(lo, interior.Lo), min(hi, interior.Hi)
	end := hi // or the first row of the next rank
	if s.Any = found != nil && lo < hi; s.Any && (hi < interior.Hi || p.mesh.PeriodicRows()) {
		end++
	}
	var above surveyed
	fixed := int64(0) // points of the row above
	batch := max(64, 16*runtime.GOMAXPROCS(0))
	if found == nil { // no row waits for the runs of those before
		batch = max(1, end-lo)
	}
	for from := lo; from < end; from += batch {
		list := make([]surveyed, min(batch, end-from))
		err := parallel.Each(len(list), func(i int) (err error) {
			if err := ended(ctx); err != nil {
				return err
			}
			r := &list[i]
			r.iy, _ = p.mesh.Canonical(from + i)
			if r.again = i > 0 && p.stencils.of(r.iy) == p.stencils.of(r.iy-1); r.again {
				return nil
			}
			rows := p.take(r.iy)
			defer p.give(rows)
			*r, err = rows.survey(r.iy, s.Any)
			return err
		})
		if err != nil {
			return s, err
		}
		for i, r := range list {
			if r.again {
				r.fixed = fixed
			}
			if fixed = r.fixed; from+i < hi {
				s.Fixed += fixed
			}
			s.Maxima.add(r.Maxima)
			switch own := from+i < hi; {
			case !s.Any:
			case r.again && own && found.heldNow:
				found.repeat()
			case r.again:
				above.runs = repeated(above.runs, r.iy)
				found.add(above, p.mesh, own)
			default:
				above = r
				found.add(r, p.mesh, own)
			}
		}
	}
	if s.Any {
		s.found = found
		s.end(end > hi, p.leastHold())
	}
	return s, nil
}

// end looks at the parts that were found. more says that the newest row is the first one of the next rank.
func (s *Survey) end(more bool, leastHold float64) {
	f := s.found
	const unknown = -4
	s.place = slices.Repeat([]int32{unknown}, len(f.list))
	list := func(root int32) int32 {
		s.Parts = append(s.Parts, f.list[root])
		s.place[root] = int32(len(s.Parts) - 1)
		return s.place[root]
	}
	places := func(row []patch) (of []int32) {
		for _, c := range row {
			root := f.root(c.part)
			if s.place[root] == unknown {
				list(root)
			}
			of = append(of, s.place[root])
		}
		return of
	}
	s.Top = places(f.top)
	if more {
		s.Bottom = places(f.now)
	}
	for i := range f.list {
		switch g := &f.list[i]; {
		case f.parent[i] != int32(i) || s.place[i] != unknown:
		case g.Driven && !g.Held:
			list(int32(i))
		default:
			s.place[i] = s.Tally.add(g, leastHold)
		}
	}
	for i := range f.done {
		if g := &f.done[i]; g.Driven && !g.Held {
			s.Parts = append(s.Parts, *g)
		} else {
			s.Tally.add(g, leastHold)
		}
	}
}

// repeated returns runs as they are in row iy.
func repeated(runs []run, iy int) []run {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].part.IY, runs[i].part.DY = iy, iy
	}
	return runs
}

// UniteSurveys finds the islands of the whole mesh from what the ranks have surveyed, in their order. It refuses a
// problem in which nothing determines the constant of a driven part, or in which nothing is driven.
func (p *Problem) UniteSurveys(all []Survey) (*Islands, error) {
	v := &Islands{Places: make([][]int32, len(all))}
	var u parts // over all Parts of all surveys
	var ranks []int
	first := make([]int32, len(all))
	for r := range all {
		s := &all[r]
		v.Tally.merge(s.Tally)
		first[r] = int32(len(u.list))
		for i := range s.Parts {
			u.parent, u.list = append(u.parent, int32(len(u.list))), append(u.list, s.Parts[i])
		}
		if s.Any {
			ranks = append(ranks, r)
		}
	}
	for i, r := range ranks {
		next := ranks[(i+1)%len(ranks)]
		if len(all[r].Bottom) == 0 {
			continue
		}
		if len(all[next].Top) != len(all[r].Bottom) {
			return nil, fmt.Errorf("rank %d ends with %d runs of material, and rank %d begins with %d", r,
				len(all[r].Bottom), next, len(all[next].Top))
		}
		for k, place := range all[r].Bottom {
			u.join(first[r]+place, first[next]+all[next].Top[k])
		}
	}
	become := make([]int32, len(u.list))
	var driven []int32 // roots
	for i := range u.list {
		if u.parent[i] == int32(i) {
			g := &u.list[i]
			if become[i] = v.Tally.add(g, p.leastHold()); g.Driven && !g.Held {
				driven = append(driven, int32(i))
			}
		}
	}
	slices.SortFunc(driven, func(a, b int32) int {
		return cmp.Or(cmp.Compare(u.list[a].IY, u.list[b].IY), cmp.Compare(u.list[a].IX, u.list[b].IX))
	})
	for n, root := range driven {
		become[root] = int32(n)
		v.Driven = append(v.Driven, u.list[root])
	}
	for r := range all {
		for i := range all[r].Parts {
			v.Places[r] = append(v.Places[r], become[u.root(first[r]+int32(i))])
		}
	}
	return v, p.checkIslands(v)
}

// leastHold is the part of the diagonals that screenings and Robin walls have to be where they alone determine a
// constant. The weights of a point are rounded, to a few 2^-26 or 2^-55 of the diagonal.
func (p *Problem) leastHold() float64 {
	if p.mesh.DType == solver.Float32 {
		return 0x1p-14
	}
	return leastScreening
}

// checkIslands refuses a problem in which nothing determines the constant of a driven part, or in which nothing is
// driven. Where nothing is held at all, a driven part that is alone needs no constant: see TakeOff.
func (p *Problem) checkIslands(v *Islands) error {
	nothing := !v.Held && len(v.Driven) == 0
	switch w := v.weak; {
	case nothing && v.Idle == [2]Count{}:
		return fmt.Errorf("%s: no point is free and has a coefficient above 0", p.coefficient.key)
	case w != nil && (w.Driven || nothing):
		return fmt.Errorf("problem.screening: in the material around %s, it and robin sides alone determine a "+
			"constant, and are %.2g of the diagonals of its equations; with %v it must be at least %.2g, as rounding "+
			"loses less; values on a side or fixed points help, too", p.where(w.IY, w.IX), w.hold/w.total,
			p.mesh.DType, p.leastHold())
	case nothing && v.Idle[1].Parts == 0 && p.loose:
		return p.undriven()
	case nothing && v.Idle[1].Parts == 0 && p.unfixed():
		return p.undetermined()
	case nothing && v.Idle[1].Parts == 0:
		return fmt.Errorf("%s: the material touches no side and no point with values, and has no source: its field "+
			"would be 0 everywhere", p.coefficient.key)
	}
	switch {
	case v.Loose() && p.loose && len(v.Driven) > 1:
		g := v.Driven[1]
		return fmt.Errorf("%s: at %s they add to a second part of the material that touches no side and no point with "+
			"values; one alone could be solved: make them 0 in the others, or give the parts values",
			p.drivers(g.DY, g.DX), p.where(g.DY, g.DX))
	case v.Loose() && p.loose:
		return nil
	case v.Loose():
		return p.undetermined()
	}
	for _, g := range v.Driven {
		if !g.Hold {
			return fmt.Errorf("%s: at %s they add to material that touches no side and no point with values, so that "+
				"nothing takes it up; make them 0 there, or give a value on a side, points in %s, problem.screening "+
				"above 0, or a coefficient of 0", p.drivers(g.DY, g.DX), p.where(g.DY, g.DX), p.fixed.key)
		}
	}
	return nil
}

// holds reports whether something determines the constant of a part.
func (v *Islands) holds() bool {
	return v.Held || v.Idle[1].Parts > 0 || slices.ContainsFunc(v.Driven, func(g Part) bool { return g.Hold })
}

// apart returns the pairs of opposite sides with values or heat transfers that no part of the material joins. With
// fixed points inside there are none: they may be what conducts.
func (p *Problem) apart() (pairs [][2]string) {
	given := func(k int) bool { return p.sides[k].wall == solver.Dirichlet || p.sides[k].robin() }
	for _, side := range []int{west, north} {
		if p.porous && p.fixed.none() && given(side) && given(side+1) && p.islands.Joined&sideBit(side) == 0 {
			pairs = append(pairs, [2]string{sideNames[side], sideNames[side+1]})
		}
	}
	return pairs
}

// Islands returns the islands that Check has found, or that TakeIslands was given; nil where there can be none.
func (p *Problem) Islands() *Islands { return p.islands }

// Tell has Setup tell of islands, which another Problem of the same configuration has found.
func (p *Problem) Tell(v *Islands) { p.islands = v }

// Any reports whether there are islands.
func (v *Islands) Any() bool { return len(v.Driven) > 0 || v.Idle != [2]Count{} }

// Loose reports whether driven parts have no constant. It is the same for all of them.
func (v *Islands) Loose() bool { return v != nil && len(v.Driven) > 0 && !v.holds() }
