package solver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"jacobi/internal/compute/reference"
	"jacobi/solver"
)

// plain is a simple float64 backend: rows in maps by row number, computed one sweep at a time.
type plain struct {
	layout    solver.Layout
	limits    solver.Limits
	last      string      // the newest call that changed the fields
	pass      solver.Pass // the newest one
	now, next map[int][]float64
	edges     map[int][]float64 // the whole result of a pass whose Interior is to come
	edgeSums  []solver.Sum
	sums      map[uint64][]solver.Sum
	undone    int
	loaded    int
	swept     int // sweeps done, replays included
	damageAt  int // sweep at which a value becomes NaN; 0 for never

	exaggerateBefore int // sweeps before this one report a sum far larger than a sweep can make
}

func newPlain(l solver.Layout, limits solver.Limits) *plain {
	return &plain{layout: l, limits: limits, sums: map[uint64][]solver.Sum{}}
}

// order returns an error unless a call may follow the newest one that changed the fields, as solver.Sweeper says.
func (p *plain) order(call string, after ...string) error {
	if !slices.Contains(after, p.last) {
		return fmt.Errorf("%s after %q, allowed is %q", call, p.last, after)
	}
	return nil
}

// begin returns an error unless the call may begin or end pass b.
func (p *plain) begin(call string, b solver.Pass, after ...string) error {
	return errors.Join(p.order(call, after...), p.layout.CheckPass(b, p.limits.MaxSweeps))
}

func (p *plain) Load(_ context.Context, rows solver.RowSource) error {
	p.now, p.next = map[int][]float64{}, map[int][]float64{}
	p.loaded++
	for y := p.layout.Stripe.Lo - p.layout.Depth; y < p.layout.Stripe.Hi+p.layout.Depth; y++ {
		c, ok := p.layout.Mesh.Canonical(y)
		if !ok {
			continue
		}
		b := make([]byte, p.layout.Mesh.RowBytes())
		if err := rows.Row(c, b); err != nil {
			return err
		}
		p.now[y] = decode(b)
		p.next[y] = decode(b)
	}
	p.last = "Load"
	return nil
}

// group is a group's sum and the part of it that is bias: the smallest normal numbers added along with the squares.
type group struct{ sum, bias float64 }

// exaggerate makes sum larger than any sweep could.
func exaggerate(sum *solver.Sum) { sum.AddScaled(1<<40, 120) }

// advance returns the result of pass b on now: rows [Lo-Margin, Hi+Margin) after its sweeps, and the sums.
func (p *plain) advance(b solver.Pass) (map[int][]float64, []solver.Sum) {
	s := p.layout.Stripe
	old := p.now
	var sums []solver.Sum
	for level := 1; level <= b.Sweeps; level++ {
		reach := b.Margin + b.Sweeps - level
		fresh := map[int][]float64{}
		var sum solver.Sum
		groups := make([]group, (p.layout.Mesh.NX+3)/4) // those of eight rows
		end := func() {
			for i, g := range groups {
				sum.Add(g.sum-g.bias, p.layout.Magnitude)
				groups[i] = group{}
			}
		}
		for y := s.Lo - reach; y < s.Hi+reach; y++ {
			if !p.layout.Mesh.PeriodicRows() && (y < 1 || y > p.layout.Mesh.NY-2) {
				continue
			}
			o := old[y]
			n := append([]float64(nil), o...)
			d := make([]float64, (len(o)+3)/4*4)
			for x := 1; x < len(o)-1; x++ {
				n[x] = reference.Update(solver.Float64, solver.Operator{}, o[x-1], o[x+1], old[y-1][x], old[y+1][x],
					reference.Values{})
				d[x] = n[x] - o[x]
			}
			if p.damageAt > 0 && b.First+level-1 == p.damageAt && y == s.Lo {
				n[1], d[1] = math.NaN(), math.NaN()
			}
			fresh[y] = n
			if y < s.Lo || y >= s.Hi {
				continue
			}
			if y%8 == 0 {
				end()
			}
			for x := 0; x < len(d); x += 4 {
				const s = 0x1p-1022
				left := math.FMA(d[x+1], d[x+1], math.FMA(d[x], d[x], s))
				right := math.FMA(d[x+3], d[x+3], math.FMA(d[x+2], d[x+2], s))
				g := groups[x/4]
				groups[x/4] = group{g.sum + (left + right), g.bias + 2*s}
			}
		}
		end()
		for y, row := range old { // fixed rows
			if _, ok := fresh[y]; !ok && !p.layout.Mesh.PeriodicRows() && (y == 0 || y == p.layout.Mesh.NY-1) {
				fresh[y] = row
			}
		}
		old = fresh
		if b.First+level-1 < p.exaggerateBefore {
			exaggerate(&sum)
		}
		sums = append(sums, sum)
	}
	return old, sums
}

func (p *plain) Edges(_ context.Context, b solver.Pass) error {
	if b.Margin != 0 {
		return fmt.Errorf("edges of pass %+v, whose margin is not 0", b)
	}
	if err := p.begin("Edges", b, "Load", "Interior", "Undo"); err != nil {
		return err
	}
	p.edges, p.edgeSums = p.advance(b)
	p.last, p.pass = "Edges", b
	return nil
}

func (p *plain) HaloBytes() [2]int { return p.layout.HaloBytes() }

func (p *plain) CopyEdge(_ context.Context, side solver.Side, dst []byte) error {
	if err := errors.Join(p.order("CopyEdge", "Edges"), p.layout.CheckSide(side, len(dst))); err != nil {
		return err
	}
	encode(p.edges, p.layout.Edge(side).Lo, dst)
	return nil
}

func (p *plain) Interior(_ context.Context, b solver.Pass) error {
	if p.last == "Edges" && b != p.pass {
		return fmt.Errorf("interior of pass %+v after edges of pass %+v", b, p.pass)
	}
	if err := p.begin("Interior", b, "Load", "Edges", "Interior", "Undo"); err != nil {
		return err
	}
	rows, sums := p.edges, p.edgeSums
	if p.last != "Edges" {
		rows, sums = p.advance(b)
	}
	p.next, p.now = p.now, rows
	p.sums[b.Index] = sums
	p.swept += b.Sweeps
	p.last, p.pass = "Interior", b
	return nil
}

func (p *plain) SetHalo(_ context.Context, side solver.Side, src []byte) error {
	if err := errors.Join(p.order("SetHalo", "Interior"), p.layout.CheckSide(side, len(src))); err != nil {
		return err
	}
	lo := p.layout.Halo(side).Lo
	width := p.layout.Mesh.RowBytes()
	for i := range p.layout.Depth {
		p.now[lo+i] = decode(src[i*width : (i+1)*width])
	}
	return nil
}

func (p *plain) Sums(_ context.Context, b solver.Pass) ([]solver.Sum, error) {
	if b.Index > p.pass.Index || b.Index+uint64(p.limits.Lag) < p.pass.Index {
		return nil, fmt.Errorf("sums of pass %d after pass %d, with a lag of %d", b.Index, p.pass.Index, p.limits.Lag)
	}
	var sums []solver.Sum
	for i, sum := range p.sums[b.Index] {
		if p.layout.Norms.Has(b.First + i) {
			sums = append(sums, sum)
		}
	}
	return sums, p.order("Sums", "Interior")
}

func (p *plain) Undo() error {
	if err := p.order("Undo", "Interior"); err != nil {
		return err
	}
	p.now, p.next = p.next, p.now
	p.undone++
	p.last = "Undo"
	return nil
}

func (p *plain) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	if err := p.layout.CheckCopy(s, len(dst)); err != nil {
		return err
	}
	encode(p.now, s.Lo, dst)
	return nil
}

func (p *plain) Limits() solver.Limits { return p.limits }
func (p *plain) Close() error          { return nil }

func decode(b []byte) []float64 {
	row := make([]float64, len(b)/8)
	_ = binary.Read(bytes.NewReader(b), binary.LittleEndian, row) // lengths agree
	return row
}

// encode fills dst with the rows from lo on.
func encode(rows map[int][]float64, lo int, dst []byte) {
	for i := 0; len(dst) > 0; i++ {
		for _, v := range rows[lo+i] {
			binary.LittleEndian.PutUint64(dst, math.Float64bits(v))
			dst = dst[8:]
		}
	}
}

// hub connects the ranks of one process: links and reduction.
type hub struct {
	ranks int
	rows  map[[2]int]chan []byte // by receiver and side
	mu    sync.Mutex
	cond  *sync.Cond
	given map[uint64][]solver.Contribution
}

func newHub(ranks int) *hub {
	h := &hub{ranks: ranks, rows: map[[2]int]chan []byte{}, given: map[uint64][]solver.Contribution{}}
	h.cond = sync.NewCond(&h.mu)
	for r := range ranks {
		h.rows[[2]int{r, 0}], h.rows[[2]int{r, 1}] = make(chan []byte, 2), make(chan []byte, 2)
	}
	return h
}

// link is one side of one rank.
type link struct {
	out, in chan []byte
}

func (h *hub) link(rank int, side solver.Side) solver.RowLink {
	peer := rank + 2*int(side) - 1
	peer = (peer + h.ranks) % h.ranks
	return link{out: h.rows[[2]int{peer, int(side.Opposite())}], in: h.rows[[2]int{rank, int(side)}]}
}

func (l link) Send(_ context.Context, n solver.ExchangeNumber, rows []byte) error {
	select {
	case l.out <- append(binary.LittleEndian.AppendUint64(nil, uint64(n)), rows...):
		return nil
	default:
		return errors.New("more than two exchanges under way")
	}
}

func (l link) Recv(ctx context.Context, n solver.ExchangeNumber, rows []byte) error {
	select {
	case b := <-l.in:
		if binary.LittleEndian.Uint64(b) != uint64(n) {
			return errors.New("rows of another exchange")
		}
		copy(rows, b[8:])
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Post implements solver.Reducer; all ranks share it.
func (h *hub) Post(_ context.Context, pass uint64, c solver.Contribution) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given[pass] = append(h.given[pass], solver.Contribution{Sums: append([]solver.Sum(nil), c.Sums...),
		Flags: c.Flags})
	h.cond.Broadcast()
	return nil
}

// Wait implements solver.Reducer.
func (h *hub) Wait(_ context.Context, pass uint64) (solver.Contribution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.given[pass]) < h.ranks {
		h.cond.Wait()
	}
	total := solver.Contribution{Sums: make([]solver.Sum, len(h.given[pass][0].Sums))}
	for _, c := range h.given[pass] {
		for i, s := range c.Sums {
			total.Sums[i].Merge(s)
		}
		total.Flags |= c.Flags
	}
	return total, nil
}
