package aggregation

import (
	"context"
	"fmt"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Row is the equations of a row of points, NX values each, as solver.Values of these names.
type Row struct {
	Diagonal    []float64 // 0 at a point that is not an unknown
	East, South []float64 // faces; those of walls and to points that are not unknowns count for the excess
}

// Part is what one rank computes of level 1: the sets of the points of the rows of tiles that it covers, and the
// equations of those that it owns.
type Part struct {
	tiling         Tiling
	covered, owned solver.Stripe
	sets           [][]int32 // by row of tiles that is covered: by row and column
	strips         []strip   // by row of tiles that is owned
}

// Rounding bounds the excess of the diagonal of a point over the sum of its faces that rounding makes, relative to it.
const Rounding = 0x1p-49

// Screening returns what the diagonal of a point has besides its faces to the west, east, north and south.
func Screening(diagonal, w, e, n, s float64) float64 {
	if k := diagonal - ((w + e) + (n + s)); k > float64(Rounding*diagonal) {
		return k
	}
	return 0
}

// Aggregate computes a part on the given number of threads. Covered and owned are rows of tiles; the owned ones and the
// ones beside them are covered. read reads a row of the mesh, also one of a fixed wall; of the rows of tiles that are
// covered, and the rows above and below them. It may be called by several goroutines at once.
func (t Tiling) Aggregate(ctx context.Context, read func(y int, to Row) error, covered, owned solver.Stripe,
	threads int) (*Part, error) {
	p := &Part{tiling: t, covered: covered, owned: owned, sets: make([][]int32, covered.Rows()),
		strips: make([]strip, owned.Rows())}
	readers := make([]*reader, threads)
	for i := range readers {
		readers[i] = newReader(t, read)
	}
	err := each(ctx, threads, covered.Rows(), func(thread, k int) error {
		return p.aggregate(readers[thread], covered.Lo+k)
	})
	if err == nil {
		err = each(ctx, threads, owned.Rows(), func(thread, k int) error {
			return p.leadDown(readers[thread], owned.Lo+k)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("aggregation: %w", err)
	}
	return p, nil
}

// Sets returns, by column, the index of the set of each point of row y among those of its row of tiles, and -1 at
// points that are not unknowns. The row lies in a row of tiles that is covered, perhaps around the mesh.
func (p *Part) Sets(y int) []int32 {
	k, nx := p.tiling.TileRow(y), p.tiling.mesh.NX
	i := y - p.tiling.Rows(k).Lo
	k = p.covered.Lo + p.tiling.Wrapped(k-p.covered.Lo)
	return p.sets[k-p.covered.Lo][i*nx : (i+1)*nx]
}

// Bytes returns the equations of the rows of tiles that are owned, for New.
func (p *Part) Bytes() (data []byte) {
	for i := range p.strips {
		data = p.strips[i].encode(data)
	}
	return data
}

// each calls do for 0 to n-1 on threads. It returns the error of the lowest one that fails, or the cause with which the
// context has ended.
func each(ctx context.Context, threads, n int, do func(thread, i int) error) error {
	return parallel.On(threads, n, func(thread, i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return do(thread, i)
	})
}

// reader makes patches of rows of tiles of points.
type reader struct {
	Tiling
	read func(y int, to Row) error
	rows []Row // the rows of tiles, with the rows above and below
	grouper
	gatherer
}

func newReader(t Tiling, read func(y int, to Row) error) *reader {
	r := &reader{Tiling: t, read: read}
	for range t.shape.rows + 2 {
		nx := t.mesh.NX
		all := make([]float64, 3*nx)
		r.rows = append(r.rows, Row{all[:nx:nx], all[nx : 2*nx : 2*nx], all[2*nx:]})
	}
	return r
}

// load reads row y, which may not exist. Points outside the interior are no unknowns.
func (r *reader) load(y int, to Row) error {
	row, ok := r.mesh.Canonical(y)
	if !ok {
		clear(to.Diagonal)
		clear(to.South)
		return nil
	}
	if err := r.read(y, to); err != nil {
		return fmt.Errorf("row %d: %w", row, err)
	}
	in := r.mesh.Interior()
	lo, hi := r.mesh.InteriorColumns()
	if row < in.Lo || row >= in.Hi {
		hi = lo
	}
	clear(to.Diagonal[:lo])
	clear(to.Diagonal[hi:])
	if row == r.mesh.NY-1 && !r.mesh.PeriodicRows() {
		clear(to.South)
	}
	return nil
}

// aggregate computes the sets of a row of tiles and, if it is owned, its equations but the faces that lead down.
func (p *Part) aggregate(r *reader, tileRow int) error {
	rows := p.tiling.Rows(tileRow)
	for y := rows.Lo - 1; y <= rows.Hi; y++ {
		if err := r.load(y, r.rows[y-rows.Lo+1]); err != nil {
			return err
		}
	}
	r.fill(rows.Rows())
	sets := r.group()
	p.sets[tileRow-p.covered.Lo] = sets.set
	if tileRow >= p.owned.Lo && tileRow < p.owned.Hi {
		p.strips[tileRow-p.owned.Lo] = r.strip(&r.patch, &sets)
	}
	return nil
}

// fill makes the patch of the given number of rows, from r.rows[1] on.
func (r *reader) fill(rows int) {
	nx := r.mesh.NX
	lo, hi := r.mesh.InteriorColumns()
	g := &r.patch
	g.excess, g.diagonal = g.excess[:0], g.diagonal[:0]
	g.begin, g.to, g.face = append(g.begin[:0], 0), g.to[:0], g.face[:0]
	for i := range rows {
		above, here, below := r.rows[i], r.rows[i+1], r.rows[i+2]
		for x := range nx {
			c, excess := here.Diagonal[x], 0.0
			if c > 0 {
				west, east := x-1, x+1
				if r.mesh.PeriodicColumns() {
					west, east = lo+(x-lo+hi-lo-1)%(hi-lo), lo+(x-lo+1)%(hi-lo)
				}
				w, e, n, s := 0.0, 0.0, above.South[x], here.South[x]
				if west >= 0 {
					w = here.East[west]
				}
				if east < nx {
					e = here.East[x]
				}
				excess = Screening(c, w, e, n, s)
				lead := func(f, neighbour float64, to int) {
					if !(neighbour > 0) {
						excess += f
					} else if f > 0 {
						g.to, g.face = append(g.to, int32(to)), append(g.face, f)
					}
				}
				if n > 0 {
					to := (i-1)*nx + x
					if i == 0 {
						to = -1
					}
					lead(n, above.Diagonal[x], to)
				}
				if w > 0 {
					lead(w, here.Diagonal[west], i*nx+west)
				}
				if e > 0 {
					lead(e, here.Diagonal[east], i*nx+east)
				}
				if s > 0 {
					to := (i+1)*nx + x
					if i == rows-1 {
						to = -1
					}
					lead(s, below.Diagonal[x], to)
				}
			}
			g.begin = append(g.begin, int32(len(g.to)))
			g.excess, g.diagonal = append(g.excess, excess), append(g.diagonal, c)
		}
	}
	g.tiles, g.order = append(g.tiles[:0], 0), g.order[:0]
	for range r.tileColumns() {
		first, end := r.columns(len(g.tiles) - 1)
		for i := range rows {
			for x := first; x < end; x++ {
				if r.rows[i+1].Diagonal[x] > 0 {
					g.order = append(g.order, int32(i*nx+x))
				}
			}
		}
		g.tiles = append(g.tiles, int32(len(g.order)))
	}
}

// columns returns the columns [lo, hi) of points in a column of tiles.
func (t Tiling) columns(tile int) (lo, hi int) {
	_, origin := t.origin()
	first, end := t.mesh.InteriorColumns()
	lo = origin + tile*t.shape.columns
	return max(lo, first), min(lo+t.shape.columns, end)
}

// leadDown computes the faces that lead from a row of tiles to the next one.
func (p *Part) leadDown(r *reader, tileRow int) error {
	s := &p.strips[tileRow-p.owned.Lo]
	s.down = newFaces(s.unknowns())
	if tileRow+1 == p.tiling.TileRows() && !p.tiling.mesh.PeriodicRows() {
		for range s.unknowns() {
			s.down.begin = append(s.down.begin, 0)
		}
		return nil
	}
	last := p.tiling.Rows(tileRow).Hi - 1
	if err := r.load(last, r.rows[0]); err != nil {
		return err
	}
	here, below := p.Sets(last), p.Sets(last+1)
	for t := range len(s.tiles) - 1 {
		lo, hi := p.tiling.columns(t)
		for set := s.tiles[t]; set < s.tiles[t+1]; set++ {
			for x := lo; x < hi; x++ {
				if f := r.rows[0].South[x]; here[x] == set && below[x] >= 0 && f > 0 {
					r.add(below[x], f)
				}
			}
			r.close(&s.down)
		}
	}
	return nil
}
