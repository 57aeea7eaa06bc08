package halo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/internal/base/awake"
	"jacobi/internal/base/shm"
	"jacobi/solver"
)

// TransportShared is the name of the transport between processes of one node.
const TransportShared = "shared memory"

// The segment of a link holds the following, each item aligned to 64 bytes:
//
//	word ready; a frame header for each direction, which describes the link as the creator knows it
//	for each direction, the one in which the creator sends first:
//	  word sent: number of exchanges written to the ring, modulo 2^32; the sender sets it
//	  word received: number of exchanges copied out of it, modulo 2^32; the receiver sets it
//	  2 slots, each a frame header and the rows
//
// Two slots are enough: a sender is at most one exchange ahead, so the slot of exchange n is free again when the sender
// comes to exchange n+2.
const (
	slots     = 2
	headerGap = 128 // a frame header, rounded up
	ringsAt   = shm.WordSize + 2*headerGap
)

func align(n int) int { return (n + shm.WordSize - 1) / shm.WordSize * shm.WordSize }

func ringSize(rows int) int { return 2*shm.WordSize + slots*(headerGap+align(rows)) }

// SharedOptions tune a link through shared memory.
type SharedOptions struct {
	Timeout time.Duration // bounds Send and Recv
	Spin    time.Duration // how long a wait polls before it sleeps; see shm.SpinTime
}

// SharedMemory is the Peer for processes of one node.
type SharedMemory struct{ Options SharedOptions }

// Name returns TransportShared.
func (SharedMemory) Name() string { return TransportShared }

// Reachable reports whether the two ranks share memory.
func (SharedMemory) Reachable(neighbour Member) (bool, string) {
	if !neighbour.SharesMemory {
		return false, neighbour.Why
	}
	return true, neighbour.Why + ", segment mapped"
}

// Offer creates the segment of a link.
func (s SharedMemory) Offer(end End) (Link, json.RawMessage, error) {
	l, h, err := CreateShared(end, s.Options)
	if err != nil {
		return nil, nil, err
	}
	offer, err := json.Marshal(h)
	return l, offer, err
}

// Accept maps the segment.
func (s SharedMemory) Accept(end End, offer json.RawMessage) (Link, error) {
	var h shm.Handle
	if err := json.Unmarshal(offer, &h); err != nil {
		return nil, fmt.Errorf("halo: offer of shared memory: %w", err)
	}
	return OpenShared(end, h, s.Options)
}

// CreateShared creates the segment of a link and returns this end and a handle. In the neighbour's process OpenShared
// makes the other end from the handle.
func CreateShared(end End, o SharedOptions) (Link, shm.Handle, error) {
	if err := end.check(); err != nil {
		return nil, shm.Handle{}, err
	}
	seg, err := shm.Create(ringsAt + ringSize(end.SendBytes()) + ringSize(end.RecvBytes()))
	if err != nil {
		return nil, shm.Handle{}, end.wrap("open", 0, TransportShared, err)
	}
	there := end.Facing()
	for i, e := range []End{end, there} {
		f := e.frame(kindRows, 0)
		f.put(seg.Bytes()[shm.WordSize+i*headerGap:], nil)
	}
	seg.Word(0).Store(1)
	l := &sharedLink{end: end, opts: o, seg: seg}
	l.out = newRing(seg, ringsAt, end.SendBytes())
	l.in = newRing(seg, ringsAt+ringSize(end.SendBytes()), end.RecvBytes())
	return l, seg.Handle(), nil
}

// OpenShared makes the second end of a link from the handle of the first. It fails if the neighbour's memory cannot be
// mapped, or if the two ends do not match.
func OpenShared(end End, h shm.Handle, o SharedOptions) (Link, error) {
	if err := end.check(); err != nil {
		return nil, err
	}
	seg, err := shm.Open(h)
	if err != nil {
		return nil, end.wrap("open", 0, TransportShared, err)
	}
	if err := sameSegment(seg, end); err != nil {
		return nil, errors.Join(end.wrap("open", 0, TransportShared, err), seg.Close())
	}
	l := &sharedLink{end: end, opts: o, seg: seg}
	l.in = newRing(seg, ringsAt, end.RecvBytes())
	l.out = newRing(seg, ringsAt+ringSize(end.RecvBytes()), end.SendBytes())
	return l, nil
}

// sameSegment compares the creator's headers with the opener's end.
func sameSegment(seg *shm.Segment, end End) error {
	if len(seg.Bytes()) < ringsAt {
		return &MismatchError{Field: "bytes of a segment at least", Got: len(seg.Bytes()), Want: ringsAt}
	}
	if err := mismatch("segment's state", seg.Word(0).Load(), 1); err != nil {
		return err
	}
	header := func(i int) []byte {
		at := shm.WordSize + i*headerGap
		return seg.Bytes()[at : at+headerSize]
	}
	theirs, _, err := parseFrame(header(0))
	if err != nil {
		return err
	}
	mine, _, err := parseFrame(header(1))
	if err != nil {
		return err
	}
	there := end.Facing()
	if err := errors.Join(end.addressed(&theirs), there.addressed(&mine)); err != nil {
		return err
	}
	if err := end.agrees(&theirs); err != nil {
		return err
	}
	if err := there.agrees(&mine); err != nil {
		return err
	}
	want := ringsAt + ringSize(end.SendBytes()) + ringSize(end.RecvBytes())
	return mismatch("bytes of a segment", len(seg.Bytes()), want)
}

// ring is one direction of a link. count is the number of exchanges that this end has written to it or copied out of
// it, modulo 2^32.
type ring struct {
	mu             sync.Mutex // held while a call uses the segment
	count          uint32
	sent, received *shm.Word
	header         [slots][]byte
	rows           [slots][]byte
}

func newRing(seg *shm.Segment, at, size int) *ring {
	r := &ring{sent: seg.Word(at), received: seg.Word(at + shm.WordSize)}
	at += 2 * shm.WordSize
	for i := range slots {
		r.header[i] = seg.Bytes()[at : at+headerSize]
		r.rows[i] = seg.Bytes()[at+headerGap : at+headerGap+size]
		at += headerGap + align(size)
	}
	return r
}

type sharedLink struct {
	end     End
	opts    SharedOptions
	seg     *shm.Segment
	out, in *ring
	closed  atomic.Bool
}

func (l *sharedLink) Send(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("send", exchange, TransportShared, len(rows), l.end.SendBytes()); err != nil {
		return err
	}
	r := l.out
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := l.wait(ctx, r.received, true, exchange, func(received uint32) bool {
		return r.count-received < slots
	}); err != nil {
		return err
	}
	slot := r.count % slots
	copy(r.rows[slot], rows)
	f := l.end.frame(kindRows, exchange)
	f.total = uint64(len(rows))
	f.put(r.header[slot], nil) // without a checksum of the rows: memory does not damage them
	r.count++
	r.sent.Store(r.count)
	return nil
}

func (l *sharedLink) Recv(ctx context.Context, exchange solver.ExchangeNumber, rows []byte) error {
	if err := l.end.checkLen("receive", exchange, TransportShared, len(rows), l.end.RecvBytes()); err != nil {
		return err
	}
	r := l.in
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := l.wait(ctx, r.sent, false, exchange, func(sent uint32) bool { return sent != r.count }); err != nil {
		return err
	}
	slot := r.count % slots
	if err := l.expect(r.header[slot], exchange, len(rows)); err != nil {
		return l.end.wrap("receive", exchange, TransportShared, err)
	}
	copy(rows, r.rows[slot])
	r.count++
	r.received.Store(r.count)
	return nil
}

func (l *sharedLink) expect(header []byte, exchange solver.ExchangeNumber, bytes int) error {
	f, _, err := parseFrame(header)
	if err != nil {
		return err
	}
	if err := l.end.addressed(&f); err != nil {
		return err
	}
	if err := l.end.agrees(&f); err != nil {
		return err
	}
	return errors.Join(mismatch("exchange", f.exchange, exchange), mismatch("bytes", int(f.total), bytes))
}

func (l *sharedLink) wait(ctx context.Context, w *shm.Word, sending bool, exchange solver.ExchangeNumber,
	ready func(uint32) bool) error {
	op := "receive"
	if sending {
		op = "send"
	}
	if l.closed.Load() {
		return l.end.wrap(op, exchange, TransportShared, ErrClosed)
	}
	if ready(w.Load()) {
		return nil
	}
	limit := awake.Of(ctx).Limit(l.opts.Timeout)
	over := func(v uint32) bool { return ready(v) || l.closed.Load() }
	err := w.Wait(ctx, l.opts.Spin, limit.Earliest(), over)
	// The limit does not count time in which the run was stopped.
	for errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil && limit.Left() > 0 {
		err = w.Wait(ctx, 0, limit.Deadline(), over)
	}
	switch {
	case l.closed.Load():
		return l.end.wrap(op, exchange, TransportShared, ErrClosed)
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		return l.end.timeout(sending, exchange, TransportShared, l.opts.Timeout, "")
	case err != nil:
		return l.end.wrap(op, exchange, TransportShared, err)
	}
	return nil
}

// Close ends calls in progress, then unmaps the segment. The neighbour can still read rows that were sent.
func (l *sharedLink) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.out.received.Wake()
	l.in.sent.Wake()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	return l.seg.Close()
}
