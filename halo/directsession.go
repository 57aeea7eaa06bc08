package halo

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	minSocketBuffer = 64 << 10
	maxSocketBuffer = 4 << 20
)

// session is a set of connections that carry frames both ways, until one of them breaks.
type session struct {
	writers // beside them, readers run
	owner   *sockets
	conns   []net.Conn
	once    sync.Once
	err     error
}

func newSession(s *sockets) *session {
	n := &session{owner: s, writers: writers{link: s.link, over: make(chan struct{})}}
	n.fail, n.write = n.end, n.writePart
	return n
}

// start begins to read and write.
func (n *session) start() {
	for _, c := range n.conns {
		n.running.Go(func() { n.end(n.read(c)) })
	}
	n.writers.start(len(n.conns))
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

// writePart writes a part of the rows in slot to connection i.
func (n *session) writePart(i int, slot *outSlot, part int) error {
	f, payload := n.part(i, slot, part)
	header := n.packing[i].room(headerSize)
	n.owner.encode(&f, header, payload)
	if err := n.conns[i].SetWriteDeadline(time.Now().Add(n.link.opts.Timeout)); err != nil {
		return err
	}
	if err := writeBoth(n.conns[i], header, payload); err != nil {
		return fmt.Errorf("write the rows of exchange %d: %w", slot.exchange, err)
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
