package roster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// MaxMessage is the most bytes of one message between ranks.
	MaxMessage = 64 << 20

	chunkBytes = 256 << 10 // NATS flows best with it
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Second
	maxLines   = 1 << 16 // lines that others may open here
)

// post carries messages between ranks over core NATS, which may lose them, deliver them twice or out of order.
// A sender has one chunk under way a line and repeats it until the receiver has said that it took it; so a
// receiver holds one chunk, however much is sent to it before it asks.
type post struct {
	conn  Conn
	id    Identity
	retry time.Duration // before the first repetition; it doubles up to lastRetry

	mu  sync.Mutex
	in  map[line]*inbox
	out map[line]*outbox
}

// line is one direction between this rank and a peer, under one tag.
type line struct {
	peer int
	tag  string
}

type inbox struct {
	seq   uint64        // of the message that is next or under way
	next  uint32        // its chunk that is next
	held  *frame        // that chunk, once it came
	data  []byte        // the chunks before it
	ready chan struct{} // holds a token after held was set
}

type outbox struct {
	seq   uint64
	chunk uint32
	acked chan struct{} // closed when the receiver has taken chunk; replaced with every chunk
}

func newPost(conn Conn, id Identity) *post {
	return &post{conn: conn, id: id, retry: firstRetry, in: map[line]*inbox{}, out: map[line]*outbox{}}
}

// hear takes one message from the server. It never waits.
func (p *post) hear(m *nats.Msg) {
	f, err := decodeFrame(m.Data)
	if err != nil || f.from >= p.id.Size || f.from == p.id.Rank {
		return // the sender of an honest one repeats it
	}
	if f.ack {
		p.hearAck(f)
		return
	}
	if p.hold(f) {
		p.acknowledge(f)
	}
}

func (p *post) hearAck(f frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.out[line{f.from, f.tag}]
	if o == nil || o.acked == nil || o.seq != f.seq || o.chunk != f.chunk {
		return
	}
	close(o.acked)
	o.acked = nil
}

// hold keeps f if it is the next chunk. It reports whether f was taken before, so that its sender missed the
// acknowledgement.
func (p *post) hold(f frame) (before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.inbox(line{f.from, f.tag}, true)
	if in == nil {
		return false
	}
	if f.seq < in.seq || f.seq == in.seq && f.chunk < in.next {
		return true
	}
	if f.seq == in.seq && f.chunk == in.next && in.held == nil {
		in.held = &f
		select {
		case in.ready <- struct{}{}:
		default:
		}
	}
	return false
}

func (p *post) inbox(l line, foreign bool) *inbox {
	in := p.in[l]
	if in == nil && !(foreign && len(p.in) >= maxLines) {
		in = &inbox{ready: make(chan struct{}, 1)}
		p.in[l] = in
	}
	return in
}

// acknowledge need not succeed: the sender asks again.
func (p *post) acknowledge(f frame) {
	_ = p.conn.Publish(postSubject(p.id.RunID, f.from),
		frame{ack: true, from: p.id.Rank, tag: f.tag, seq: f.seq, chunk: f.chunk, chunks: f.chunks}.encode())
}

func (p *post) send(ctx context.Context, to int, tag string, data []byte) error {
	size := min(chunkBytes, int(p.conn.MaxPayload())-frameOverhead)
	if size <= 0 {
		return fmt.Errorf("the server's max_payload of %d is too small", p.conn.MaxPayload())
	}
	l := line{to, tag}
	p.mu.Lock()
	o := p.out[l]
	if o == nil {
		o = &outbox{}
		p.out[l] = o
	}
	p.mu.Unlock()
	chunks := max(1, (len(data)+size-1)/size)
	for c := range chunks {
		acked := make(chan struct{})
		p.mu.Lock()
		o.chunk, o.acked = uint32(c), acked
		f := frame{from: p.id.Rank, tag: tag, seq: o.seq, chunk: uint32(c), chunks: uint32(chunks),
			total: uint64(len(data)),
			data:  data[c*size : min(len(data), (c+1)*size)]}
		p.mu.Unlock()
		if err := p.repeat(ctx, to, f.encode(), acked); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o.seq++
	return nil
}

// repeat publishes b until acked is closed.
func (p *post) repeat(ctx context.Context, to int, b []byte, acked <-chan struct{}) error {
	wait := p.retry
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if err := p.conn.Publish(postSubject(p.id.RunID, to), b); err != nil &&
			!errors.Is(err, nats.ErrReconnectBufExceeded) {
			return err
		}
		select {
		case <-acked:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		wait = min(2*wait, lastRetry)
		timer.Reset(wait)
	}
}

func (p *post) recv(ctx context.Context, from int, tag string) ([]byte, error) {
	p.mu.Lock()
	in := p.inbox(line{from, tag}, false)
	p.mu.Unlock()
	for {
		select {
		case <-in.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		f, data, err := p.take(in)
		if err != nil {
			return nil, err
		}
		p.acknowledge(f)
		if f.chunk+1 == f.chunks {
			return data, nil
		}
	}
}

// take moves the chunk that in holds to the end of its data, and starts the next message after the last one.
func (p *post) take(in *inbox) (frame, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := *in.held
	in.held = nil
	if f.chunk == 0 {
		in.data = make([]byte, 0, f.total)
	}
	if len(in.data)+len(f.data) > cap(in.data) {
		return f, nil, fmt.Errorf("chunk %d of %d has more than the %d bytes that were said before", f.chunk, f.chunks,
			cap(in.data))
	}
	in.data = append(in.data, f.data...)
	f.data = nil
	in.next++
	if f.chunk+1 < f.chunks {
		return f, nil, nil
	}
	data := in.data
	in.data, in.next = nil, 0
	in.seq++
	if uint64(len(data)) != f.total {
		return f, nil, fmt.Errorf("%d bytes came of the %d that were said before", len(data), f.total)
	}
	return f, data, nil
}
