package solver

import (
	"context"
	"fmt"
	"time"
)

// ExchangeNumber counts the exchanges of a link: 1, 2, ...
type ExchangeNumber uint64

// Exchange moves rows between the ranks of a run: of one field, or of several meshes and their levels. All ranks make
// the same calls, for the same rows. Errors name the exchange.
type Exchange interface {
	// Post sends the edges of r to the neighbours.
	Post(ctx context.Context, r HaloRows) error
	// Wait fills the halos of r with the edges that the neighbours have posted. Post and Wait alternate, and both are
	// given the same rows.
	Wait(ctx context.Context, r HaloRows) error
	// Gather gives every rank the blocks of all others.
	Gather(ctx context.Context, r BlockRows) error
}

// HaloRows are rows that a rank shares with its neighbours: edges, which it owns, and halos, which are copies of the
// neighbours' edges. An Exchange through the host's memory copies them.
type HaloRows interface {
	// HaloBytes returns the size of the edge at each side, which is that of the halo there; 0 without a neighbour.
	HaloBytes() [2]int
	// CopyEdge copies the edge at a side to dst, dense.
	CopyEdge(ctx context.Context, side Side, dst []byte) error
	// SetHalo fills the halo beyond a side from src: dense rows, from top to bottom.
	SetHalo(ctx context.Context, side Side, src []byte) error
}

// BlockRows are rows of which each rank has computed a block, from top to bottom by rank.
type BlockRows interface {
	// BlockBytes returns the size of each rank's block.
	BlockBytes() []int
	// CopyBlock copies the block of this rank to dst, dense.
	CopyBlock(ctx context.Context, dst []byte) error
	// SetBlock sets the block of a rank.
	SetBlock(ctx context.Context, rank int, src []byte) error
}

// RowLink carries rows between one side of this rank and the facing side of its neighbour: Recv(n) on one end yields
// the rows given to Send(n) on the other. Exchanges may differ in length; Recv refuses another length than that of its
// rows. Errors name the exchange.
type RowLink interface {
	Send(ctx context.Context, n ExchangeNumber, rows []byte) error
	Recv(ctx context.Context, n ExchangeNumber, rows []byte) error
}

// RowLender is a RowLink with memory of its own for the rows, which saves a copy each way.
type RowLender interface {
	RowLink
	// Room returns memory for rows of exchange n, the next one to send. Send(n) of it copies nothing.
	Room(ctx context.Context, n ExchangeNumber, bytes int) ([]byte, error)
	// Take waits as Recv does and returns the rows, which stay until Room or Send of exchange n+1.
	Take(ctx context.Context, n ExchangeNumber, bytes int) ([]byte, error)
}

// ExchangeTimer is a RowLink that is told the times of the rank's other work for an exchange.
type ExchangeTimer interface {
	RowLink
	// CopiedEdge says that an edge, which Send is given next, was copied out of the field in d.
	CopiedEdge(d time.Duration)
	// CopiedHalo says that the rows received last were copied into the field in d.
	CopiedHalo(d time.Duration)
}

// HostExchange is an Exchange through the host's memory, with one link for each side.
type HostExchange struct {
	options HostOptions
	sides   [2]*hostSide // by Side; nil where the mesh ends
}

// HostOptions are the parameters of a HostExchange.
type HostOptions struct {
	Rank int // of this one
	Most int // bytes that the links carry at once; larger blocks travel in parts
	// Background has a goroutine for each side send and receive the rows. Post returns before the rows are sent, so the
	// interior can be swept meanwhile. That pays where a device sweeps, and the host would only wait.
	Background bool
}

// NewHostExchange returns an exchange over links, indexed by Side; nil where no rows have a neighbour.
func NewHostExchange(links [2]RowLink, o HostOptions) *HostExchange {
	x, shared := &HostExchange{options: o}, new([]byte)
	for side, link := range links {
		switch {
		case link == nil:
		case o.Background:
			x.sides[side] = newHostSide(link, new([]byte), new([]byte))
		default:
			x.sides[side] = newHostSide(link, shared, shared)
		}
	}
	return x
}

// Post implements Exchange.
func (x *HostExchange) Post(ctx context.Context, r HaloRows) error {
	bytes := r.HaloBytes()
	for side, n := range bytes {
		if n > 0 && x.sides[side] == nil {
			return fmt.Errorf("exchange: %v side: a neighbour and no link", Side(side))
		}
	}
	return x.post(ctx, bytes, bytes, func(side Side, dst []byte) error { return r.CopyEdge(ctx, side, dst) })
}

// Wait implements Exchange.
func (x *HostExchange) Wait(ctx context.Context, r HaloRows) error {
	bytes := r.HaloBytes()
	return x.wait(ctx, bytes, bytes, func(side Side, src []byte) error { return r.SetHalo(ctx, side, src) })
}

// post sends the given bytes to each neighbour, which fill writes, and begins to receive what each of them sends. With
// a neighbour to which nothing goes and from which nothing comes there is no exchange.
func (x *HostExchange) post(ctx context.Context, send, recv [2]int, fill func(side Side, dst []byte) error) error {
	for i, s := range x.sides {
		if s == nil || send[i]+recv[i] == 0 {
			continue
		}
		if err := s.fill(ctx, send[i], func(dst []byte) error { return fill(Side(i), dst) }); err != nil {
			return err
		}
		if x.options.Background {
			go func() { s.done <- s.swap(ctx, recv[i]) }()
		} else if err := s.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wait takes the bytes that each neighbour sends.
func (x *HostExchange) wait(ctx context.Context, send, recv [2]int, take func(side Side, src []byte) error) error {
	for i, s := range x.sides {
		if s == nil || send[i]+recv[i] == 0 {
			continue
		}
		var err error
		if x.options.Background {
			err = <-s.done // ends with the context of Post
		} else {
			err = s.take(ctx, recv[i])
		}
		if err != nil {
			return err
		}
		if err := s.set(func(src []byte) error { return take(Side(i), src) }); err != nil {
			return err
		}
	}
	return nil
}

// hostSide carries rows between a device and the neighbour at one side, through the host's memory and over a link. For
// each exchange its caller calls fill, send, take and set, in this order.
type hostSide struct {
	link       RowLink
	lender     RowLender      // link, if it is one; nil otherwise
	timer      ExchangeTimer  // the same
	number     ExchangeNumber // the present one
	sent, recv *[]byte
	out, in    []byte     // the rows of the present exchange
	done       chan error // from the goroutine that sends and receives them, if there is one
}

// newHostSide returns the side of a link. Unless the link lends memory, the side keeps the rows that it sends and those
// that it receives in sent and recv, which it enlarges as needed. Sides that are used one at a time may share them,
// so that they stay in the cache.
func newHostSide(link RowLink, sent, recv *[]byte) *hostSide {
	lender, _ := link.(RowLender)
	timer, _ := link.(ExchangeTimer)
	return &hostSide{link: link, lender: lender, timer: timer, sent: sent, recv: recv, done: make(chan error, 1)}
}

// sized returns the first n bytes of memory, which it enlarges if need be.
func sized(memory *[]byte, n int) []byte {
	if len(*memory) < n {
		*memory = make([]byte, n)
	}
	return (*memory)[:n]
}

// fill begins the next exchange: it has copyOut copy n bytes of rows out of the device.
func (s *hostSide) fill(ctx context.Context, n int, copyOut func(dst []byte) error) (err error) {
	s.number++
	if s.lender == nil {
		s.out = sized(s.sent, n)
	} else if s.out, err = s.lender.Room(ctx, s.number, n); err != nil {
		return err
	}
	begin := time.Now()
	if err := copyOut(s.out); err != nil {
		return fmt.Errorf("exchange %d: %w", s.number, err)
	}
	if s.timer != nil {
		s.timer.CopiedEdge(time.Since(begin))
	}
	return nil
}

// send sends the rows.
func (s *hostSide) send(ctx context.Context) error { return s.link.Send(ctx, s.number, s.out) }

// take receives n bytes of rows.
func (s *hostSide) take(ctx context.Context, n int) (err error) {
	if s.lender == nil {
		s.in = sized(s.recv, n)
		return s.link.Recv(ctx, s.number, s.in)
	}
	s.in, err = s.lender.Take(ctx, s.number, n)
	return err
}

// swap sends the rows and receives n bytes of those of the neighbour.
func (s *hostSide) swap(ctx context.Context, n int) error {
	if err := s.send(ctx); err != nil {
		return err
	}
	return s.take(ctx, n)
}

// set has copyIn copy the rows that take has received into the device.
func (s *hostSide) set(copyIn func(src []byte) error) error {
	begin := time.Now()
	if err := copyIn(s.in); err != nil {
		return fmt.Errorf("exchange %d: %w", s.number, err)
	}
	if s.timer != nil {
		s.timer.CopiedHalo(time.Since(begin))
	}
	return nil
}

// Gather implements Exchange. The ranks are a chain: in step k each rank passes on to the rank below what the k-th rank
// above has computed, and to the rank above what the k-th rank below has.
func (x *HostExchange) Gather(ctx context.Context, r BlockRows) error {
	var all [][]byte
	most := 0
	for _, n := range r.BlockBytes() {
		all, most = append(all, make([]byte, n)), max(most, n)
	}
	if err := r.CopyBlock(ctx, all[x.options.Rank]); err != nil {
		return err
	}
	for k := 1; k < len(all); k++ {
		for at := 0; at < most; at += x.options.Most {
			if err := x.pass(ctx, all, k, at); err != nil {
				return err
			}
		}
	}
	for rank, block := range all {
		if err := r.SetBlock(ctx, rank, block); err != nil {
			return err
		}
	}
	return nil
}

// pass does the part of step k that begins at byte at of each block.
func (x *HostExchange) pass(ctx context.Context, all [][]byte, k, at int) error {
	own := x.options.Rank
	part := func(rank int) []byte {
		if rank < 0 || rank >= len(all) || at >= len(all[rank]) {
			return nil
		}
		return all[rank][at:min(len(all[rank]), at+x.options.Most)]
	}
	var out, in [2][]byte
	if own > 0 {
		out[Top], in[Top] = part(own+k-1), part(own-k)
	}
	if own < len(all)-1 {
		out[Bottom], in[Bottom] = part(own-k+1), part(own+k)
	}
	send, recv := [2]int{len(out[0]), len(out[1])}, [2]int{len(in[0]), len(in[1])}
	if err := x.post(ctx, send, recv, func(side Side, dst []byte) error {
		copy(dst, out[side])
		return nil
	}); err != nil {
		return err
	}
	return x.wait(ctx, send, recv, func(side Side, src []byte) error {
		copy(in[side], src)
		return nil
	})
}
