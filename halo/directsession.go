package halo

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"jacobi/solver"
)

const (
	minSocketBuffer = 64 << 10
	maxSocketBuffer = 4 << 20
)

// session is a set of connections that carry frames both ways, until one of them breaks. Part i of an exchange goes
// through connection i modulo their number.
type session struct {
	owner   *sockets
	conns   []net.Conn
	queues  []chan solver.ExchangeNumber // by connection
	packing []packing                    // by connection, of the goroutine that writes
	flying  inFlight
	over    chan struct{} // closed when the session ends
	once    sync.Once
	running sync.WaitGroup // readers and writers
	err     error
}

func newSession(s *sockets) *session {
	return &session{owner: s, flying: newInFlight(), over: make(chan struct{})}
}

// start begins to read and write.
func (n *session) start() {
	n.queues, n.packing = make([]chan solver.ExchangeNumber, len(n.conns)), make([]packing, len(n.conns))
	for i, c := range n.conns {
		n.queues[i] = make(chan solver.ExchangeNumber, 2)
		n.running.Go(func() { n.end(n.read(c)) })
		if !n.inline() {
			n.running.Go(func() { n.end(n.write(i)) })
		}
	}
}

// end closes the connections. The first error counts.
func (n *session) end(err error) {
	n.once.Do(func() {
		n.err = err
		n.owner.broken(err) // first: whoever finds the session ended then finds the reason, too
		close(n.over)
		n.close()
		n.owner.hurry()
	})
}

func (n *session) ended() bool {
	select {
	case <-n.over:
		return true
	default:
		return false
	}
}

func (n *session) close() {
	for _, c := range n.conns {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn() // without an alert, which could wait
		}
		_ = c.Close()
	}
}

// inlineRows is the size in bytes of rows up to which Send writes itself: two exchanges fit into the system's buffers,
// so it does not wait, and waking a writer takes longer than writing.
const inlineRows = 16 << 10

func (n *session) inline() bool {
	return len(n.conns) == 1 && n.owner.link.end.SendBytes() <= inlineRows
}

// post hands the rows of exchange to the writers. It never waits: the owner vacates the memory of an exchange first.
func (n *session) post(exchange solver.ExchangeNumber) {
	if n.inline() {
		if err := n.writeRows(0, exchange); err != nil {
			n.end(err)
			return
		}
		n.owner.link.sent(exchange)
		return
	}
	n.flying.begin(exchange, len(n.queues))
	for _, q := range n.queues {
		q <- exchange
	}
}

// write writes the parts of connection i.
func (n *session) write(i int) error {
	for {
		var exchange solver.ExchangeNumber
		select {
		case exchange = <-n.queues[i]:
		case <-n.over:
			return nil
		}
		if err := n.writeRows(i, exchange); err != nil {
			return err
		}
		if n.flying.done(exchange) {
			n.owner.link.sent(exchange)
		}
	}
}

// writeRows writes the parts of exchange that go through connection i.
func (n *session) writeRows(i int, exchange solver.ExchangeNumber) error {
	l, conn := n.owner.link, n.conns[i]
	slot := &l.out.slots[exchange%2]
	for part := i; part < l.out.parts; part += len(n.conns) {
		header, rows := n.frame(&n.packing[i], slot, part)
		if err := conn.SetWriteDeadline(time.Now().Add(l.opts.Timeout)); err != nil {
			return err
		}
		if err := writeBoth(conn, header, rows); err != nil {
			return fmt.Errorf("write the rows of exchange %d: %w", exchange, err)
		}
	}
	return nil
}

// frame returns the header and the payload of part i of the rows in slot, packed as NATSLink.frame does.
func (n *session) frame(p *packing, slot *outSlot, i int) (header, payload []byte) {
	f, packed := p.part(n.owner.link, slot, i)
	if packed {
		header, payload = p.frame[:headerSize], p.frame[headerSize:]
	} else {
		if cap(p.frame) < headerSize {
			p.frame = make([]byte, headerSize)
		}
		header = p.frame[:headerSize]
		f, payload = n.owner.link.out.part(slot, i)
	}
	n.owner.encode(&f, header, payload)
	return header, payload
}

// writeBoth writes a header and rows without copying them together.
func writeBoth(conn net.Conn, header, rows []byte) error {
	if tcp, ok := conn.(*net.TCPConn); ok {
		b := net.Buffers{header, rows}
		_, err := b.WriteTo(tcp)
		return err
	}
	if _, err := conn.Write(header); err != nil {
		return err
	}
	_, err := conn.Write(rows)
	return err
}

// encode writes the header of a frame. TLS and the memory of one machine damage nothing, so the checksum then leaves
// out the rows.
func (s *sockets) encode(f *frame, header, rows []byte) {
	if s.checksums() {
		f.encode(header, rows)
		return
	}
	f.header(header, len(rows))
	binary.LittleEndian.PutUint32(header[crcAt:], checksum(header, nil))
}

func (s *sockets) checksums() bool { return s.tls == nil && !s.opts.Trusted }
