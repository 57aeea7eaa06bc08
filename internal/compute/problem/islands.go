package problem

import (
	"context"
	"fmt"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// islands are the connected parts of the free points of a weighted problem, found row by row. Points beside, above or
// below each other belong to one part.
type islands struct {
	p      *Problem
	parent []int32
	parts  []island // of roots
	now    []int32  // by column: the part of a point of the newest row; -1 for none
	first  []int32  // of the first row, which the last one meets if rows are periodic
	last   []bool   // which points of the newest row are free
	// allHeld says that all parts of the newest row are known to be held.
	allHeld bool
}

// goesOn reports whether the free points of the next row all lie below free points, of parts that are held: nothing
// new is learned from it then.
func (s *islands) goesOn(st *stencil) bool {
	if !slices.Equal(st.free, s.last) {
		return false
	}
	if !s.allHeld {
		s.allHeld = !slices.ContainsFunc(s.now, func(label int32) bool {
			return label >= 0 && !s.parts[s.root(label)].held
		})
	}
	return s.allHeld
}

// island is one part, or a part of one.
type island struct {
	iy, ix int     // its first point, by rows
	held   bool    // a point has a neighbour that keeps a value
	hold   float64 // what screenings and Robin walls contribute to the diagonals of its points
	total  float64 // the diagonals
}

// labelled bounds the parts that are remembered beyond those of two rows before they are numbered anew.
const labelled = 1 << 22

// leastHold is the part of the diagonals that screenings and Robin walls have to be where they alone determine a
// constant. The weights of a point are rounded, to a few 2^-26 or 2^-55 of the diagonal.
func (p *Problem) leastHold() float64 {
	if p.mesh.DType == solver.Float32 {
		return 0x1p-14
	}
	return leastScreening
}

// scanIslands refuses a weighted problem with a part whose constant nothing determines: it touches no point with a
// value, and has neither a screening nor a Robin wall. It reads the whole problem, and returns the largest absolute
// value of the source.
func (p *Problem) scanIslands(ctx context.Context) (largest float64, err error) {
	s := &islands{p: p}
	interior := p.mesh.Interior()
	rows := make([]*stencil, 0, 64)
	for lo := interior.Lo; lo < interior.Hi; lo += cap(rows) {
		rows = rows[:min(cap(rows), interior.Hi-lo)]
		sources := make([]float64, len(rows)) // the largest of each row
		err := parallel.Each(len(rows), func(i int) (err error) {
			if err = ended(ctx); err != nil {
				return err
			}
			if rows[i], err = p.stencil(lo + i); err == nil {
				sources[i] = p.largestOfRow(rows[i])
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		largest = max(largest, slices.Max(sources))
		for i, st := range rows {
			if s.goesOn(st) {
				continue
			}
			if err := s.add(lo+i, st); err != nil {
				return 0, err
			}
			s.last, s.allHeld = st.free, false
		}
	}
	for ix := range s.first {
		if p.mesh.PeriodicRows() && s.first[ix] >= 0 && s.now[ix] >= 0 {
			s.join(s.first[ix], s.now[ix])
		}
	}
	if len(s.parts) == 0 {
		return 0, fmt.Errorf("%s: no point is free and has a coefficient above 0", p.coefficient.key)
	}
	for i := range s.parent {
		if err := s.check(int32(i)); err != nil {
			return 0, err
		}
	}
	return largest, nil
}

// add adds the next row.
func (s *islands) add(iy int, st *stencil) error {
	above := s.now
	s.now = make([]int32, len(st.free))
	for ix, free := range st.free {
		s.now[ix] = -1
		if !free {
			continue
		}
		label := int32(-1)
		if ix > 0 {
			label = s.now[ix-1]
		}
		if above != nil && above[ix] >= 0 {
			if label >= 0 {
				s.join(label, above[ix])
			}
			label = above[ix]
		}
		if label < 0 {
			label = int32(len(s.parent))
			s.parent, s.parts = append(s.parent, label), append(s.parts, island{iy: iy, ix: ix})
		}
		s.now[ix] = label
		root := &s.parts[s.root(label)]
		root.held = root.held || st.held[ix]
		root.hold += float64(st.hold[ix] * st.diagonal[ix])
		root.total += st.diagonal[ix]
	}
	if lo, hi := s.p.mesh.InteriorColumns(); s.p.mesh.PeriodicColumns() && s.now[lo] >= 0 && s.now[hi-1] >= 0 {
		s.join(s.now[lo], s.now[hi-1])
	}
	if s.first == nil {
		s.first = append([]int32(nil), s.now...)
	}
	if len(s.parent) > labelled+4*len(s.now) {
		return s.renumber()
	}
	return nil
}

func (s *islands) root(label int32) int32 {
	for s.parent[label] != label {
		s.parent[label] = s.parent[s.parent[label]]
		label = s.parent[label]
	}
	return label
}

// join makes two parts one.
func (s *islands) join(a, b int32) {
	a, b = s.root(a), s.root(b)
	if a == b {
		return
	}
	a, b = min(a, b), max(a, b)
	s.parent[b] = a
	s.parts[a].held = s.parts[a].held || s.parts[b].held
	s.parts[a].hold += s.parts[b].hold
	s.parts[a].total += s.parts[b].total
}

// renumber forgets the parts that cannot grow any more, after it has checked them.
func (s *islands) renumber() error {
	number := map[int32]int32{}
	var parts []island
	for _, row := range [][]int32{s.first, s.now} {
		for ix, label := range row {
			if label < 0 {
				continue
			}
			root := s.root(label)
			if _, ok := number[root]; !ok {
				number[root] = int32(len(parts))
				parts = append(parts, s.parts[root])
			}
			row[ix] = number[root]
		}
	}
	for i := range s.parent {
		if _, alive := number[int32(i)]; !alive {
			if err := s.check(int32(i)); err != nil {
				return err
			}
		}
	}
	s.parts, s.parent = parts, make([]int32, len(parts))
	for i := range s.parent {
		s.parent[i] = int32(i)
	}
	return nil
}

// check refuses a whole part whose constant nothing determines.
func (s *islands) check(label int32) error {
	g, p := s.parts[label], s.p
	if s.parent[label] != label || g.held || g.hold > 0 && g.hold >= p.leastHold()*g.total {
		return nil
	}
	where := "the material around " + p.where(g.iy, g.ix)
	if g.hold > 0 {
		return fmt.Errorf("problem.screening: in %s, it and robin sides alone determine a constant, and are %.2g "+
			"of the diagonals of its equations; with %v it must be at least %.2g, as rounding loses less; values on a "+
			"side or fixed points help, too", where, g.hold/g.total, p.mesh.DType, p.leastHold())
	}
	if p.coefficient.constant() {
		return p.undetermined()
	}
	return fmt.Errorf("%s: %s touches no side and no point with values, so any constant can be added to a solution "+
		"there; give a value on a side, points in %s, problem.screening above 0, a robin side with h above 0, or a "+
		"coefficient of 0", p.coefficient.key, where, p.fixed.key)
}
