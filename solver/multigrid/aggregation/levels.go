package aggregation

import (
	"context"
	"fmt"
	"math"
)

// Levels are the levels of a mesh from level 1 on. They are the same on all ranks.
type Levels struct {
	First  []int32 // by row of tiles: its first unknown of level 1; and the number of unknowns
	Levels []Level // Levels[0] is level 1
	// Inverse is the inverse of the equations of the coarsest level, row by row, as inverse has it. It is nil where the
	// coarsest level has too many unknowns, which then has its sweeps alone.
	Inverse []float64
}

// Level is the equations of a level, and how its unknowns come together on the next one.
type Level struct {
	Excess    []float32 // e, by unknown
	Inverse   []float64 // 1/d, and 0 where d is 0
	Begin     []int32   // by unknown: its first face; and the number of faces
	Neighbour []int32   // by face, in ascending order for each unknown
	Face      []float32 // f, by face
	Set       []int32   // by unknown: its unknown on the next level, -1 for one that has none; nil on the coarsest
	// By unknown of the next level: the first of its Members; and their number. Members are in ascending order.
	First, Members []int32
}

// coarsest is the most unknowns of a level that is solved directly and not coarsened; direct is the most where sets no
// longer grow.
const coarsest, direct = 256, 1024

// New puts the levels together from the parts of all ranks, from the top of the mesh to the bottom. It fails if they
// are not those of the tiling, or if a level has more unknowns or faces than 32 bits count.
func New(t Tiling, parts [][]byte, threads int) (*Levels, error) {
	strips, err := decode(t, parts, threads)
	if err != nil {
		return nil, fmt.Errorf("aggregation: %w", err)
	}
	l := &Levels{}
	_, ratio := shapeOf(t.ratio)
	g := grid{ring: t.mesh.PeriodicRows(), columns: t.tileColumns(), threads: threads}
	for {
		level, err := g.assemble(strips)
		if err != nil {
			return nil, fmt.Errorf("aggregation: level %d: %w", len(l.Levels)+1, err)
		}
		last := len(l.Levels) - 1
		n := level.Unknowns()
		if last < 0 {
			l.First = g.first
		} else if whole := len(strips) == 1 && g.columns == 1; whole && 4*n > 3*l.Levels[last].Unknowns() {
			if n <= direct || g.apart {
				l.Levels[last].Set, l.Levels[last].First, l.Levels[last].Members = nil, nil, nil
				break
			}
			g.apart = true
		}
		l.Levels = append(l.Levels, level)
		if n <= coarsest {
			break
		}
		var s shape
		s, ratio = shapeOf(ratio)
		strips = g.coarsen(&l.Levels[last+1], s)
	}
	if last := &l.Levels[len(l.Levels)-1]; last.Unknowns() <= direct {
		l.Inverse = last.inverse()
	}
	return l, nil
}

// decided reports whether the excess of an unknown is above 4 times the sum of its faces. Sweeps solve for it then, and
// with sets that others hold together strongly, it does not pass the test.
func (l *Level) decided(i int32) bool { return float64(float64(l.Excess[i])*l.Inverse[i]) > 0.8 }

// Unknowns returns the number of unknowns of level 1.
func (l *Levels) Unknowns() int { return l.Levels[0].Unknowns() }

// Unknowns returns the number of unknowns of the level.
func (l *Level) Unknowns() int { return len(l.Excess) }

// decode reads the parts of all ranks.
func decode(t Tiling, parts [][]byte, threads int) ([]strip, error) {
	var data [][]byte // by row of tiles
	var of []int      // by row of tiles: its part
	tiles := t.tileColumns()
	for k, part := range parts {
		for len(part) > 0 {
			n, err := stripBytes(part, tiles)
			if err != nil {
				return nil, fmt.Errorf("part %d, row of tiles %d: %w", k, len(data), err)
			}
			data, of, part = append(data, part[:n]), append(of, k), part[n:]
		}
	}
	if len(data) != t.TileRows() {
		return nil, fmt.Errorf("the parts have %d rows of tiles, the mesh %d", len(data), t.TileRows())
	}
	strips := make([]strip, len(data))
	err := each(context.Background(), threads, len(data), func(_, k int) error {
		if err := strips[k].decode(data[k], tiles); err != nil {
			return fmt.Errorf("part %d, row of tiles %d: %w", of[k], k, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for k := range strips {
		below := 0
		if k+1 < len(strips) || t.mesh.PeriodicRows() {
			below = strips[(k+1)%len(strips)].unknowns()
		}
		if err := strips[k].checkDown(below); err != nil {
			return nil, fmt.Errorf("part %d, row of tiles %d, faces down: %w", of[k], k, err)
		}
	}
	return strips, nil
}

// grid is the tiles of the newest level while levels are put together.
type grid struct {
	ring    bool // the last row of tiles has faces to the first one
	columns int  // of tiles
	apart   bool // no set has unknowns that are decided: their faces are excess of the others
	threads int
	first   []int32   // by row of tiles: its first unknown; and the number of unknowns
	tiles   [][]int32 // by row of tiles: strip.tiles
}

// each calls do for 0 to n-1 on all threads.
func (g *grid) each(n int, do func(thread, i int)) {
	// The context never ends, and do never fails.
	_ = each(context.Background(), g.threads, n, func(thread, i int) error { do(thread, i); return nil })
}

// assemble makes a level of its rows of tiles. Every unknown gets all its faces.
func (g *grid) assemble(strips []strip) (Level, error) {
	n := len(strips)
	var total int64
	g.first, g.tiles = make([]int32, n+1), make([][]int32, n)
	for k := range strips {
		if total += int64(strips[k].unknowns()); total > math.MaxInt32 {
			return Level{}, tooMany("unknowns")
		}
		g.first[k+1], g.tiles[k] = int32(total), strips[k].tiles
	}
	rows := make([]faces, n)
	g.each(n, func(_, k int) { rows[k] = g.allFaces(strips, k) })
	begins := make([]int64, n+1)
	for k := range rows {
		begins[k+1] = begins[k] + int64(len(rows[k].to))
	}
	if begins[n] > math.MaxInt32 {
		return Level{}, tooMany("faces")
	}
	l := Level{Excess: make([]float32, total), Inverse: make([]float64, total), Begin: make([]int32, total+1),
		Neighbour: make([]int32, begins[n]), Face: make([]float32, begins[n])}
	g.each(n, func(_, k int) {
		first, begin, r := int(g.first[k]), int32(begins[k]), &rows[k]
		copy(l.Excess[first:], strips[k].excess)
		copy(l.Neighbour[begin:], r.to)
		copy(l.Face[begin:], r.face)
		for i, e := range strips[k].excess {
			l.Begin[first+i+1] = begin + r.begin[i+1]
			d := float64(e)
			for _, f := range r.face[r.begin[i]:r.begin[i+1]] {
				d += float64(f)
			}
			if d > 0 {
				l.Inverse[first+i] = 1 / d
			}
		}
	})
	return l, nil
}

func tooMany(what string) error {
	return fmt.Errorf("more than %d %s; take fewer points, or solver.method jacobi", math.MaxInt32, what)
}

// allFaces returns all faces of the unknowns of a row of tiles, in ascending order of the level's unknowns to which
// they lead. Where the mesh is a ring of one or two rows of tiles, faces between the same two unknowns are added.
func (g *grid) allFaces(strips []strip, k int) faces {
	n := len(strips)
	s, above, below := &strips[k], (k+n-1)%n, (k+1)%n
	up := &strips[above].down // empty where nothing is above
	r := newFaces(s.unknowns())
	r.begin = r.begin[:s.unknowns()+1]
	count := func(to []int32) {
		for _, j := range to {
			r.begin[j+1]++
		}
	}
	count(up.to)
	count(s.own.to)
	for i := range s.unknowns() {
		r.begin[i+1] += r.begin[i] + s.own.begin[i+1] - s.own.begin[i] + s.down.begin[i+1] - s.down.begin[i]
	}
	r.to, r.face = make([]int32, r.begin[s.unknowns()]), make([]float32, r.begin[s.unknowns()])
	next := append([]int32(nil), r.begin...)
	put := func(i, to int32, f float32) {
		r.to[next[i]], r.face[next[i]] = to, f
		next[i]++
	}
	for i := range int32(strips[above].unknowns()) {
		for f := up.begin[i]; f < up.begin[i+1]; f++ {
			put(up.to[f], g.first[above]+i, up.face[f])
		}
	}
	first := g.first[k]
	for i := range int32(s.unknowns()) {
		for f := s.own.begin[i]; f < s.own.begin[i+1]; f++ {
			put(i, first+s.own.to[f], s.own.face[f])
			put(s.own.to[f], first+i, s.own.face[f])
		}
		for f := s.down.begin[i]; f < s.down.begin[i+1]; f++ {
			put(i, g.first[below]+s.down.to[f], s.down.face[f])
		}
	}
	if g.ring && (k == 0 || k == n-1) {
		r.merge(first)
	}
	return r
}

// merge sorts the faces of each unknown, of which the first one is given, adds those to the same unknown, and leaves
// out those to the unknown itself.
func (f *faces) merge(first int32) {
	n, begin := int32(0), int32(0)
	for i := range int32(len(f.begin) - 1) {
		to, face := f.to[begin:f.begin[i+1]], f.face[begin:f.begin[i+1]]
		begin = f.begin[i+1]
		for a := 1; a < len(to); a++ {
			for b := a; b > 0 && (to[b] < to[b-1] || to[b] == to[b-1] && face[b] < face[b-1]); b-- {
				to[b], to[b-1], face[b], face[b-1] = to[b-1], to[b], face[b-1], face[b]
			}
		}
		for a := 0; a < len(to); {
			sum, b := 0.0, a
			for ; b < len(to) && to[b] == to[a]; b++ {
				sum += float64(face[b])
			}
			if to[a] != first+i {
				f.to[n], f.face[n] = to[a], float32(sum)
				n++
			}
			a = b
		}
		f.begin[i+1] = n
	}
	f.to, f.face = f.to[:n], f.face[:n]
}

// Bytes returns the bytes of memory that the levels take.
func (l *Levels) Bytes() int64 {
	bytes := 4*len(l.First) + 8*len(l.Inverse)
	for i := range l.Levels {
		v := &l.Levels[i]
		bytes += 12*len(v.Excess) + 4*len(v.Begin) + 8*len(v.Neighbour) + 4*(len(v.Set)+len(v.First)+len(v.Members))
	}
	return int64(bytes)
}
