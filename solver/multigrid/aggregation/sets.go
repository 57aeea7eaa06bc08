package aggregation

import (
	"cmp"
	"slices"
)

const (
	// quality bounds the condition of a pair of levels: kappa of the test.
	quality = 10
	// largest is the most members of a set; passes is the number of pairwise aggregations.
	largest, passes = 8, 3
	// margin is the least pivot of the test relative to the diagonal, and at the end the most that it may be below 0.
	margin = 1e-9
)

// patch is the equations of the unknowns of one row of tiles, numbered from 0.
type patch struct {
	excess, diagonal []float64
	begin            []int32   // by unknown: its first face; and the number of faces
	to               []int32   // by face: the unknown to which it leads, -1 beyond the row of tiles
	face             []float64 // f
	tiles            []int32   // by tile: the first of its unknowns in order; and their number
	order            []int32   // the unknowns by tile, in ascending order within each
}

// grouping is the sets of a patch, numbered by tile, in a tile in the order of their first members.
type grouping struct {
	set            []int32 // by unknown, -1 for those that are not in the order of the patch
	tiles          []int32 // by tile: its first set; and the number of sets
	first, members []int32 // by set: the first of its members, in ascending order; and their number
}

// links are the faces between the unknowns or the sets of a tile.
type links struct {
	excess, outside, diagonal []float64 // outside: the faces that lead out of the tile
	begin, to                 []int32
	face                      []float64
}

func (l *links) reset() {
	l.excess, l.outside, l.diagonal = l.excess[:0], l.outside[:0], l.diagonal[:0]
	l.begin, l.to, l.face = append(l.begin[:0], 0), l.to[:0], l.face[:0]
}

// grouper chooses the sets of patches, one after the other.
type grouper struct {
	patch
	local     []int32 // by unknown of the patch: its number in the tile, or -1
	points    links   // of the tile
	sets      [2]links
	of        []int32          // by unknown of the tile: its set
	groups    [][largest]int32 // by set: its members in the tile
	sizes     []int
	partner   []int32
	candidate []candidate
	place     []int32 // by member: its place in the union that is tested, or -1
	at        []int32 // by set: the face that leads to it
	// By new set: the old ones that it consists of.
	first, second []int32
}

// candidate is a set that may become the partner of another one.
type candidate struct {
	set int32
	mu  float64
}

// filled returns s with n elements, those beyond its length -1.
func filled(s []int32, n int) []int32 {
	for len(s) < n {
		s = append(s, -1)
	}
	return s
}

// group returns the sets of the patch.
func (g *grouper) group() grouping {
	n := len(g.excess)
	r := grouping{set: filled(nil, n), tiles: make([]int32, 1, len(g.tiles))}
	g.local = filled(g.local, n)
	for t := range len(g.tiles) - 1 {
		unknowns := g.order[g.tiles[t]:g.tiles[t+1]]
		first := r.tiles[t]
		count := g.tile(unknowns)
		for k, i := range unknowns {
			r.set[i] = first + g.of[k]
		}
		r.tiles = append(r.tiles, first+int32(count))
	}
	count := int(r.tiles[len(r.tiles)-1])
	r.first, r.members = make([]int32, count+1), make([]int32, len(g.order))
	for _, i := range g.order {
		r.first[r.set[i]+1]++
	}
	for s := range count {
		r.first[s+1] += r.first[s]
	}
	next := slices.Clone(r.first)
	for _, i := range g.order {
		s := r.set[i]
		r.members[next[s]] = i
		next[s]++
	}
	return r
}

// tile sets g.of to the sets of a tile and returns their number.
func (g *grouper) tile(unknowns []int32) int {
	n := len(unknowns)
	g.of, g.groups, g.sizes = g.of[:0], g.groups[:0], g.sizes[:0]
	for k := range unknowns {
		g.of = append(g.of, int32(k))
		g.groups = append(g.groups, [largest]int32{int32(k)})
		g.sizes = append(g.sizes, 1)
	}
	if n < 2 {
		return n
	}
	g.link(unknowns)
	g.place, g.at = filled(g.place, n), filled(g.at, n)
	sets := &g.points
	for pass := range passes {
		if !g.pair(sets) {
			break
		}
		count := g.join()
		if pass < passes-1 {
			next := &g.sets[pass%2]
			g.contract(sets, next, count)
			sets = next
		}
	}
	return len(g.groups)
}

// link sets g.points to the equations of a tile.
func (g *grouper) link(unknowns []int32) {
	for k, i := range unknowns {
		g.local[i] = int32(k)
	}
	l := &g.points
	l.reset()
	for k, i := range unknowns {
		outside, begin := 0.0, len(l.to)
		for f := g.begin[i]; f < g.begin[i+1]; f++ {
			j := int32(-1)
			if g.to[f] >= 0 {
				j = g.local[g.to[f]]
			}
			if j < 0 {
				outside += g.face[f]
				continue
			}
			if j == int32(k) {
				continue
			}
			if at := slices.Index(l.to[begin:], j); at >= 0 { // around a period of two points
				l.face[begin+at] += g.face[f]
				continue
			}
			l.to, l.face = append(l.to, j), append(l.face, g.face[f])
		}
		l.begin = append(l.begin, int32(len(l.to)))
		l.excess, l.outside = append(l.excess, g.excess[i]), append(l.outside, outside)
		l.diagonal = append(l.diagonal, g.diagonal[i])
	}
	for _, i := range unknowns {
		g.local[i] = -1
	}
}

// harmonic returns 1/(1/a + 1/b), and 0 where one is 0.
func harmonic(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return 0
	}
	return 1 / (1/a + 1/b)
}

// pair finds partners for sets. It returns whether there are any.
func (g *grouper) pair(sets *links) (any bool) {
	n := len(sets.excess)
	g.partner = g.partner[:0]
	g.partner = filled(g.partner, n)
	for i := range int32(n) {
		if g.partner[i] >= 0 {
			continue
		}
		g.candidate = g.candidate[:0]
		for f := sets.begin[i]; f < sets.begin[i+1]; f++ {
			if j := sets.to[f]; g.partner[j] < 0 && g.sizes[i]+g.sizes[j] <= largest {
				held := harmonic(sets.excess[i], sets.excess[j])
				mu := 2 * harmonic(sets.diagonal[i], sets.diagonal[j]) / (sets.face[f] + held)
				g.candidate = append(g.candidate, candidate{j, mu})
			}
		}
		slices.SortFunc(g.candidate, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.mu, b.mu), cmp.Compare(a.set, b.set))
		})
		for _, c := range g.candidate {
			if g.passes(i, c.set) {
				g.partner[i], g.partner[c.set], any = c.set, i, true
				break
			}
		}
	}
	return any
}

// union returns the members of two sets in ascending order.
func (g *grouper) union(i, j int32) (all [largest]int32, n int) {
	a, b := g.groups[i][:g.sizes[i]], g.groups[j][:g.sizes[j]]
	for n < g.sizes[i]+g.sizes[j] {
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			a, b = b, a
		}
		all[n], b = b[0], b[1:]
		n++
	}
	return all, n
}

// passes reports whether the union of two sets passes the test: with A the faces within it and the excesses of its
// members, and D their diagonals,
//
//	kappa A - 2 (D - D 1 1^T D / 1^T D 1)
//
// has no eigenvalue below 0. Gauss elimination without pivoting tells.
func (g *grouper) passes(i, j int32) bool {
	all, n := g.union(i, j)
	members := all[:n]
	p, sum := &g.points, 0.0
	var d, parts [largest]float64
	for k, i := range members {
		g.place[i], d[k] = int32(k), p.diagonal[i]
		sum += d[k]
	}
	for k := range members {
		parts[k] = d[k] / sum
	}
	var m [largest][largest]float64 // the upper triangle
	for k, i := range members {
		row, inner, others := &m[k], p.excess[i], 0.0
		begin, end := p.begin[i], p.begin[i+1]
		faces := p.face[begin:end]
		for f, to := range p.to[begin:end] {
			if at := int(g.place[to]); at >= 0 {
				inner += faces[f]
				if at > k {
					row[at] -= float64(quality * faces[f])
				}
			}
		}
		for _, v := range d[:k] {
			others += v
		}
		for at := k + 1; at < n; at++ {
			others += d[at]
			row[at] += float64(2 * float64(d[k]*parts[at]))
		}
		row[k] = float64(quality*inner) - float64(2*float64(d[k]*(others/sum)))
	}
	for _, i := range members {
		g.place[i] = -1
	}
	for k, i := range members {
		least := float64(margin * p.diagonal[i])
		if k == n-1 {
			return m[k][k] > -least
		}
		if !(m[k][k] > least) {
			return false
		}
		for a := k + 1; a < n; a++ {
			t, from, to := m[k][a]/m[k][k], m[k][a:n], m[a][a:n]
			for b, v := range from {
				to[b] -= float64(t * v)
			}
		}
	}
	return true
}

// join makes one set of each pair and returns the number of sets. g.partner becomes the new set of each old one.
func (g *grouper) join() int {
	count := int32(0)
	for i := range int32(len(g.partner)) {
		j := g.partner[i]
		if j >= 0 && j < i {
			g.partner[i] = g.partner[j] // already a new set
			continue
		}
		all, size := g.groups[i], g.sizes[i]
		if j >= 0 {
			all, size = g.union(i, j)
		}
		g.groups[count], g.sizes[count] = all, size
		g.partner[i] = count
		count++
	}
	g.groups, g.sizes = g.groups[:count], g.sizes[:count]
	for k, s := range g.of {
		g.of[k] = g.partner[s]
	}
	return int(count)
}

// contract sets next to the equations of count new sets; g.partner is the new set of each old one.
func (g *grouper) contract(sets, next *links, count int) {
	next.reset()
	g.first, g.second = filled(g.first[:0], count), filled(g.second[:0], count)
	first, second := g.first, g.second
	for i, s := range g.partner {
		if first[s] < 0 {
			first[s] = int32(i)
		} else {
			second[s] = int32(i)
		}
	}
	for s := range int32(count) {
		excess, outside, begin := 0.0, 0.0, len(next.to)
		for _, i := range [2]int32{first[s], second[s]} {
			if i < 0 {
				continue
			}
			excess += sets.excess[i]
			outside += sets.outside[i]
			for f := sets.begin[i]; f < sets.begin[i+1]; f++ {
				to := g.partner[sets.to[f]]
				switch at := int(g.at[to]); {
				case to == s:
				case at >= begin && at < len(next.to) && next.to[at] == to:
					next.face[at] += sets.face[f]
				default:
					g.at[to] = int32(len(next.to))
					next.to, next.face = append(next.to, to), append(next.face, sets.face[f])
				}
			}
		}
		diagonal := excess + outside
		for _, f := range next.face[begin:] {
			diagonal += f
		}
		next.begin = append(next.begin, int32(len(next.to)))
		next.excess, next.outside = append(next.excess, excess), append(next.outside, outside)
		next.diagonal = append(next.diagonal, diagonal)
	}
}
