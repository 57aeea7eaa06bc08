package halo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"jacobi/solver"
)

// Faults describe what a bad network does to messages. A seeded generator chooses the faults: the same seed and the
// same messages give the same ones. Drop, Duplicate, Reorder, Corrupt and Delay are probabilities, 0 to 1.
//
// Publisher applies the faults to single messages, to test recovery. Links through memory lose no messages, so Link
// only delays calls and cuts the link.
type Faults struct {
	Seed      uint64
	Drop      float64       // the message is lost
	Duplicate float64       // the message is sent twice
	Reorder   float64       // the message is sent after the next one
	Corrupt   float64       // one bit of the message changes
	Delay     float64       // the message is sent up to MaxDelay later
	MaxDelay  time.Duration // of a message, or of a call to a Link
	// CutCount messages (exchanges, for a Link) are lost from number CutFrom on, or all of them if CutCount < 0: the
	// connection is cut. A Link returns ErrCut for them.
	CutFrom  uint64
	CutCount int64
}

// ErrCut reports that Faults cut a link.
var ErrCut = errors.New("link cut by fault injection")

func (f Faults) cut(n uint64) bool {
	return n >= f.CutFrom && (f.CutCount < 0 || n-f.CutFrom < uint64(f.CutCount))
}

func (f Faults) rand() *rand.Rand { return rand.New(rand.NewPCG(f.Seed, 0)) }

// Publisher returns a publisher that applies the faults to messages and passes them to p. Its Close waits for delayed
// messages.
func (f Faults) Publisher(p Publisher) *FaultyPublisher {
	return &FaultyPublisher{faults: f, next: p, rand: f.rand()}
}

// FaultyPublisher is a Publisher with faults.
type FaultyPublisher struct {
	faults  Faults
	next    Publisher
	delayed sync.WaitGroup

	mu     sync.Mutex
	rand   *rand.Rand
	n      uint64 // messages so far
	held   []message
	closed bool
}

type message struct {
	subject string
	data    []byte
}

// Publish sends the message, with faults.
func (p *FaultyPublisher) Publish(subject string, data []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, n := p.faults, p.n
	p.n++
	// Draw the same number of values for every message, so that one fault does not shift the others.
	hit := func(probability float64) bool { return p.rand.Float64() < probability }
	drop, twice, later, flip, wait := hit(f.Drop), hit(f.Duplicate), hit(f.Reorder), hit(f.Corrupt), hit(f.Delay)
	bit, share := p.rand.IntN(max(1, 8*len(data))), p.rand.Float64()
	if drop || f.cut(n) || p.closed {
		return nil
	}
	m := message{subject, append([]byte(nil), data...)}
	if flip && len(data) > 0 {
		m.data[bit/8] ^= 1 << (bit % 8)
	}
	if later {
		p.held = append(p.held, m)
		return nil
	}
	out := append([]message{m}, p.held...)
	p.held = p.held[:0]
	if twice {
		out = append(out, m)
	}
	if wait {
		p.delayed.Add(1)
		time.AfterFunc(time.Duration(share*float64(f.MaxDelay)), func() {
			defer p.delayed.Done()
			_ = p.send(out) // an error here is one more lost message
		})
		return nil
	}
	return p.send(out)
}

func (p *FaultyPublisher) send(out []message) error {
	for _, m := range out {
		if err := p.next.Publish(m.subject, m.data); err != nil {
			return err
		}
	}
	return nil
}

// Close waits until no delayed message is left. Messages published after it are lost: a link that is closed may still
// answer a request that came before.
func (p *FaultyPublisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.delayed.Wait()
	return nil
}

// Link returns l with calls delayed, and cut from exchange CutFrom on. The other faults do not apply.
func (f Faults) Link(l Link) Link {
	g := f
	g.Seed++
	return &faultyLink{Link: l, faults: f, send: f.rand(), recv: g.rand()}
}

type faultyLink struct {
	Link
	faults     Faults
	send, recv *rand.Rand // Send and Recv may run at the same time
}

func (l *faultyLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.inject(ctx, l.send, exchange); err != nil {
		return err
	}
	return l.Link.Send(ctx, exchange, rows)
}

func (l *faultyLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.inject(ctx, l.recv, exchange); err != nil {
		return err
	}
	return l.Link.Recv(ctx, exchange, rows)
}

func (l *faultyLink) inject(ctx context.Context, r *rand.Rand, exchange solver.ExchangeNumber) error {
	if l.faults.cut(uint64(exchange)) {
		return ErrCut
	}
	wait, share := r.Float64() < l.faults.Delay, r.Float64()
	if !wait {
		return nil
	}
	timer := time.NewTimer(time.Duration(share * float64(l.faults.MaxDelay)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
