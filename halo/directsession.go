package halo

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"jacobi/solver"
)

const (
	minSocketBuffer = 64 << 10
	maxSocketBuffer = 4 << 20
	// pieceSize is how much is read at a time: each piece is a sign of progress.
	pieceSize = 256 << 10
)

// session is a set of connections that carry frames both ways, until one of them breaks. Part i of an exchange goes
// through connection i modulo their number.
type session struct {
	owner   *sockets
	conns   []net.Conn
	queues  []chan solver.ExchangeNumber // by connection
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
	n.queues = make([]chan solver.ExchangeNumber, len(n.conns))
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
		}
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
		n.flying.done(exchange)
	}
}

// writeRows writes the parts of exchange that go through connection i.
func (n *session) writeRows(i int, exchange solver.ExchangeNumber) error {
	l, conn := n.owner.link, n.conns[i]
	header := make([]byte, headerSize)
	slot := &l.out.slots[exchange%2]
	for part := i; part < l.out.parts; part += len(n.conns) {
		f, rows := l.out.part(slot, part)
		n.owner.encode(&f, header, rows)
		if err := conn.SetWriteDeadline(time.Now().Add(l.opts.Timeout)); err != nil {
			return err
		}
		if err := writeBoth(conn, header, rows); err != nil {
			return fmt.Errorf("write the rows of exchange %d: %w", exchange, err)
		}
	}
	return nil
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

// read reads frames from a connection until it breaks.
func (n *session) read(conn net.Conn) error {
	header := make([]byte, headerSize)
	for {
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, header); err != nil {
			return fmt.Errorf("read a frame: %w", err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(n.owner.link.opts.Timeout)); err != nil {
			return err
		}
		if err := n.readFrame(conn, header); err != nil {
			return err
		}
	}
}

// readFrame reads the rows of the frame with header into the memory of their exchange.
func (n *session) readFrame(conn net.Conn, header []byte) error {
	l := n.owner.link
	f, length, err := parseHeader(header)
	if err == nil && !n.owner.checksums() {
		err = checkFrame(header, nil)
	}
	if err == nil {
		err = l.end.addressed(&f)
	}
	if err == nil {
		err = mismatch("frame kind", f.kind, kindRows)
	}
	if err != nil {
		l.refuse(err)
		return err
	}
	if err := l.end.agrees(&f); err != nil {
		l.in.fail(err)
		return err
	}
	if _, err := partAt(&f, int(length), l.in.total); err != nil {
		l.refuse(err)
		return err
	}
	dst, err := l.in.claim(&f, int(length))
	if err != nil {
		l.refuse(err)
		return err
	}
	n.owner.strikes.Store(0)
	if dst == nil { // it came over NATS
		_, err := io.CopyN(io.Discard, conn, int64(length))
		return err
	}
	err = n.readRows(conn, dst)
	if err == nil && n.owner.checksums() {
		if err = checkFrame(header, dst); err != nil {
			l.refuse(err)
		}
	}
	l.in.settle(&f, err == nil)
	return err
}

// readRows fills dst.
func (n *session) readRows(conn net.Conn, dst []byte) error {
	for len(dst) > 0 {
		k := min(pieceSize, len(dst))
		if _, err := io.ReadFull(conn, dst[:k]); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		n.owner.link.in.advance()
		dst = dst[k:]
	}
	return nil
}
