package roster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jacobi/internal/pubsub"
)

const (
	// MaxMessage is the maximum size of a message between ranks, in bytes.
	MaxMessage = 64 << 20

	chunkBytes = 256 << 10 // near the size with the best throughput over NATS
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Second
	maxLines   = 1 << 16 // lines that other ranks may open here
)

// post carries messages between ranks over core NATS, which may lose, duplicate or reorder them. On each line a sender
// repeats one chunk until the receiver acknowledges it, and then sends the next. The receiver acknowledges a chunk only
// when Recv has taken it, so until Recv is called it holds at most one chunk a line.
type post struct {
	conn  Conn
	id    Identity
	retry time.Duration // before the first repetition; it doubles up to lastRetry

	mu  sync.Mutex
	in  map[line]*inbox
	out map[line]*outbox
}

// line is one direction between this rank and another one, under one tag.
type line struct {
	peer int
	tag  string
}

type inbox struct {
	seq   uint64        // of the current message, or of the next one
	next  uint32        // the next chunk of that message
	held  *frame        // that chunk, once it has arrived
	data  []byte        // the chunks before it
	ready chan struct{} // holds a token once held is set
}

type outbox struct {
	seq   uint64
	chunk uint32
	acked chan struct{} // closed when the receiver has acknowledged chunk; a new one for each chunk
}

func newPost(conn Conn, id Identity) *post {
	return &post{conn: conn, id: id, retry: firstRetry, in: map[line]*inbox{}, out: map[line]*outbox{}}
}

// receive handles a message from the server. It never blocks.
func (p *post) receive(m pubsub.Message) {
	f, err := decodeFrame(m.Data)
	if err != nil || f.from >= p.id.Size || f.from == p.id.Rank {
		return // a sender repeats its chunk if this one was damaged
	}
	if f.ack {
		p.receiveAck(f)
		return
	}
	if p.hold(f) {
		p.acknowledge(f)
	}
}

func (p *post) receiveAck(f frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.out[line{f.from, f.tag}]
	if o == nil || o.acked == nil || o.seq != f.seq || o.chunk != f.chunk {
		return
	}
	close(o.acked)
	o.acked = nil
}

// hold keeps f if it is the next chunk. It reports whether f was taken before: then the sender has missed the
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

// inbox returns the inbox of l. It makes one if need be, but for a foreign message at most maxLines.
func (p *post) inbox(l line, foreign bool) *inbox {
	in := p.in[l]
	if in == nil && !(foreign && len(p.in) >= maxLines) {
		in = &inbox{ready: make(chan struct{}, 1)}
		p.in[l] = in
	}
	return in
}

// acknowledge acknowledges f. The acknowledgement may be lost: the sender then repeats f.
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
			!errors.Is(err, pubsub.ErrLost) {
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

// take moves the chunk that in holds to the end of in.data. After the last chunk it returns the message and prepares in
// for the next one.
func (p *post) take(in *inbox) (frame, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := *in.held
	in.held = nil
	if f.chunk == 0 {
		in.data = make([]byte, 0, f.total)
	}
	if len(in.data)+len(f.data) > cap(in.data) {
		return f, nil, fmt.Errorf("chunk %d of %d goes beyond the %d bytes that were announced", f.chunk, f.chunks,
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
		return f, nil, fmt.Errorf("%d bytes came of the %d that were announced", len(data), f.total)
	}
	return f, data, nil
}
