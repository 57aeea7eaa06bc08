package halo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"jacobi/solver"
)

// carrier takes the rows of exchanges from the outbox of a FramedLink to the neighbour, in frames. It may lose, double
// and reorder them.
type carrier interface {
	// send has the rows of exchange sent and does not wait. It returns false if there is no connection.
	send(exchange solver.ExchangeNumber) bool
	// vacate waits until nobody reads the memory of exchange any more, which is that of exchange-2. The neighbour has
	// the rows of exchange-2.
	vacate(ctx context.Context, exchange solver.ExchangeNumber) error
	// missed is called when rows of the neighbour came only after a request.
	missed()
	close() error
}

// inlineRows is the size in bytes of rows up to which post writes itself while no writer writes: two exchanges fit into
// the system's buffers, so it hardly waits, and waking a writer takes longer than writing.
const inlineRows = 16 << 10

// writers write the parts of exchanges to several connections, each in a goroutine of its own: part i goes to
// connection i modulo their number.
type writers struct {
	link    *FramedLink
	write   func(i int, slot *outSlot, part int) error // writes a part to connection i
	fail    func(error)                                // is called with the errors of write
	over    chan struct{}                              // closed when the writers are to end
	queues  []chan solver.ExchangeNumber               // by connection
	packing []packing                                  // by connection
	running sync.WaitGroup

	left [2]atomic.Int32 // of each of the two exchanges under way, the connections that still read its rows
	idle chan struct{}   // holds a signal when one of them has become 0
}

// start begins to write to n connections.
func (w *writers) start(n int) {
	w.queues, w.packing = make([]chan solver.ExchangeNumber, n), make([]packing, n)
	w.idle = make(chan struct{}, 1)
	for i := range n {
		w.queues[i] = make(chan solver.ExchangeNumber, 2)
		w.running.Go(func() { w.run(i) })
	}
}

// post writes the rows of exchange, or hands them to the writers. It never waits for these: the rows of exchange-2 are
// out.
func (w *writers) post(exchange solver.ExchangeNumber) {
	if len(w.link.out.slots[exchange%2].rows) <= inlineRows && w.left[0].Load() == 0 && w.left[1].Load() == 0 {
		for i := range w.queues {
			if err := w.writeParts(i, exchange); err != nil {
				w.fail(err)
				return
			}
		}
		return
	}
	w.left[exchange%2].Add(int32(len(w.queues)))
	for _, q := range w.queues {
		q <- exchange
	}
}

// run writes what goes through connection i.
func (w *writers) run(i int) {
	for {
		var exchange solver.ExchangeNumber
		select {
		case exchange = <-w.queues[i]:
		case <-w.over:
			return
		}
		if err := w.writeParts(i, exchange); err != nil {
			w.fail(err)
		}
		if w.left[exchange%2].Add(-1) > 0 {
			continue
		}
		select {
		case w.idle <- struct{}{}:
		default:
		}
	}
}

// writeParts writes the parts of exchange that go through connection i.
func (w *writers) writeParts(i int, exchange solver.ExchangeNumber) error {
	slot := &w.link.out.slots[exchange%2]
	for part := i; part < slot.parts; part += len(w.queues) {
		if err := w.write(i, slot, part); err != nil {
			return err
		}
	}
	return nil
}

// await waits until no writer reads the rows of exchange, or of exchange-2. It returns false after the timeout, and
// when over ends. One goroutine at a time may wait.
func (w *writers) await(exchange solver.ExchangeNumber, timeout time.Duration, over <-chan struct{}) bool {
	left := &w.left[exchange%2]
	if left.Load() == 0 {
		return true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for left.Load() != 0 {
		select {
		case <-w.idle:
		case <-over:
			return false
		case <-timer.C:
			return false
		}
	}
	return true
}

// part returns the header of part i of the rows in slot, and the payload of its frame. If the exchange is to be packed
// and that makes the part smaller, the payload is what a writer makes of it, and lies in the writer's frame, where it
// belongs.
func (w *writers) part(writer int, slot *outSlot, i int) (f frame, payload []byte) {
	l, p := w.link, &w.packing[writer]
	f, rows := l.out.part(slot, i)
	if !slot.packed {
		return f, rows
	}
	p.frame = p.packer.pack(room(&p.frame, headerSize), rows, l.end.DType)
	packed := p.frame[headerSize:]
	if len(packed) >= len(rows) {
		return f, rows
	}
	f.kind = kindPacked
	l.choice.plain.Add(uint64(len(rows)))
	l.choice.packed.Add(uint64(len(packed)))
	return f, packed
}
