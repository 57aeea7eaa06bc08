package aggregation

import "jacobi/solver"

// builder makes patches of rows of tiles of a level from 1 on.
type builder struct {
	grouper
	gatherer
}

// coarsen returns the equations of the next level, and sets how the unknowns of the level come together there. The
// tiles of the level have the given shape in those of the level before it.
func (g *grid) coarsen(l *Level, s shape) []strip {
	n, columns := ceilDiv(len(g.tiles), s.rows), ceilDiv(g.columns, s.columns)
	strips, sets := make([]strip, n), make([]grouping, n)
	builders := make([]builder, g.threads)
	l.Set = make([]int32, l.Unknowns())
	rows := func(k int) solver.Stripe { // of tiles of the level before
		return solver.Stripe{Lo: k * s.rows, Hi: min((k+1)*s.rows, len(g.tiles))}
	}
	unknowns := func(k int) (lo, hi int32) { return g.first[rows(k).Lo], g.first[rows(k).Hi] }
	g.each(n, func(thread, k int) {
		b := &builders[thread]
		b.fill(l, g, rows(k), s.columns, columns)
		sets[k] = b.group()
		strips[k] = b.strip(&b.patch, &sets[k])
		lo, _ := unknowns(k)
		copy(l.Set[lo:], sets[k].set)
	})
	l.First = make([]int32, 1)
	for k := range sets {
		offset := l.First[len(l.First)-1]
		for _, f := range sets[k].first[1:] {
			l.First = append(l.First, offset+f)
		}
	}
	l.Members = make([]int32, l.First[len(l.First)-1])
	g.each(n, func(thread, k int) {
		s, b := &strips[k], &builders[thread]
		s.down = newFaces(s.unknowns())
		next, end := int32(0), int32(0)
		if k+1 < n || g.ring && n > 2 { // with two rows, those that lead around lead down from the first one
			next, end = unknowns((k + 1) % n)
		}
		lo, _ := unknowns(k)
		for i := range s.unknowns() {
			for _, m := range sets[k].members[sets[k].first[i]:sets[k].first[i+1]] {
				for f := l.Begin[lo+m]; f < l.Begin[lo+m+1]; f++ {
					if to := l.Neighbour[f]; to >= next && to < end && l.Set[to] >= 0 {
						b.add(l.Set[to], float64(l.Face[f]))
					}
				}
			}
			b.close(&s.down)
		}
	})
	first := make([]int32, n+1)
	for k := range strips {
		first[k+1] = first[k] + int32(strips[k].unknowns())
	}
	g.each(n, func(_, k int) {
		lo, hi := unknowns(k)
		for i := lo; i < hi; i++ {
			if l.Set[i] >= 0 {
				l.Set[i] += first[k]
			}
		}
		to := l.Members[l.First[first[k]]:]
		for i, m := range sets[k].members {
			to[i] = lo + m
		}
	})
	g.columns = columns
	return strips
}

// fill makes the patch of rows of tiles of a level, whose tiles come together in tiles of so many columns.
func (b *builder) fill(l *Level, g *grid, rows solver.Stripe, width, columns int) {
	p := &b.patch
	lo, hi := g.first[rows.Lo], g.first[rows.Hi]
	p.excess, p.diagonal = p.excess[:0], p.diagonal[:0]
	p.begin, p.to, p.face = append(p.begin[:0], 0), p.to[:0], p.face[:0]
	for i := lo; i < hi; i++ {
		e := float64(l.Excess[i])
		d := e
		for f := l.Begin[i]; f < l.Begin[i+1]; f++ {
			to, v := l.Neighbour[f]-lo, float64(l.Face[f])
			if to < 0 || to >= hi-lo {
				to = -1
			}
			d += v
			if g.apart && l.decided(l.Neighbour[f]) {
				e += v
				continue
			}
			p.to, p.face = append(p.to, to), append(p.face, v)
		}
		p.begin = append(p.begin, int32(len(p.to)))
		p.excess, p.diagonal = append(p.excess, e), append(p.diagonal, d)
	}
	p.tiles, p.order = append(p.tiles[:0], 0), p.order[:0]
	for t := range columns {
		for r := rows.Lo; r < rows.Hi; r++ {
			first, tiles := g.first[r], g.tiles[r]
			for i := first + tiles[t*width]; i < first+tiles[min((t+1)*width, len(tiles)-1)]; i++ {
				if l.Begin[i+1] > l.Begin[i] && !(g.apart && l.decided(i)) {
					p.order = append(p.order, i-lo)
				}
			}
		}
		p.tiles = append(p.tiles, int32(len(p.order)))
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
