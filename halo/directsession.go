package halo

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
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
	header := room(&n.packing[i].frame, headerSize)
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

// pieceSize is how much is read at a time: each piece is a sign of progress.
const pieceSize = 256 << 10

// read reads frames from a connection until it breaks.
func (n *session) read(conn net.Conn) error {
	header, in := make([]byte, headerSize), new(packing)
	for {
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, header); err != nil {
			return fmt.Errorf("read a frame: %w", err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(n.link.opts.Timeout)); err != nil {
			return err
		}
		if err := n.readFrame(conn, header, in); err != nil {
			return err
		}
	}
}

// readFrame reads the rows of the frame with header into the memory of their exchange.
func (n *session) readFrame(conn net.Conn, header []byte, in *packing) error {
	l := n.link
	f, length, err := n.check(header)
	if err != nil {
		l.refuse(err)
		return err
	}
	if err := l.end.agrees(&f); err != nil {
		l.in.fail(err)
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
	payload := dst
	if f.kind == kindPacked {
		payload = room(&in.frame, int(length))
	}
	err = n.readRows(conn, payload)
	if err == nil {
		if err = n.place(&f, header, payload, dst, in); err != nil {
			l.refuse(err)
		}
	}
	l.in.release(&f, err == nil)
	return err
}

// check decodes header and returns an error unless a frame with rows may follow.
func (n *session) check(header []byte) (f frame, length uint32, err error) {
	f, length, err = parseHeader(header)
	if err == nil && !n.owner.checksums() {
		err = checkFrame(header, nil)
	}
	if err == nil {
		err = n.link.end.addressed(&f)
	}
	if err == nil && f.kind != kindPacked {
		err = mismatch("frame kind", f.kind, kindRows)
	}
	return f, length, err
}

// place checks the payload of a frame that has been read, and unpacks it into dst unless it lies there.
func (n *session) place(f *frame, header, payload, dst []byte, in *packing) error {
	if n.owner.checksums() {
		if err := checkFrame(header, payload); err != nil {
			return err
		}
	}
	if f.kind != kindPacked {
		return nil
	}
	return in.packer.unpack(dst, payload, n.link.end.DType)
}

// readRows fills dst.
func (n *session) readRows(conn net.Conn, dst []byte) error {
	for len(dst) > 0 {
		k := min(pieceSize, len(dst))
		if _, err := io.ReadFull(conn, dst[:k]); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		n.link.in.advance()
		dst = dst[k:]
	}
	return nil
}

// The two ends of a connection prove to each other that they have the key of their link before they send anything else.
// M(text) is HMAC-SHA256 of text, of both hellos and of a value that only these two ends of the TLS connection have
// (RFC 9266, tls-exporter), so that nobody can stand between them.
//
//	second end: hello, 48 bytes: magic u32, version u8, stream u8, streams u8, 0, session u64, 32 random bytes
//	first end:  32 random bytes, M("first")
//	second end: M("second")
//	first end:  M("accepted")
const (
	proofMagic   = 0x5249444a // "JDIR"
	proofVersion = 1
	helloSize    = 48
	nonceSize    = 32
)

// hello is what a connection is for.
type hello struct {
	stream, streams int
	session         uint64 // equal for the connections that replace each other's at the same time
}

// errStranger reports a connection that is not one of the link's.
var errStranger = errors.New("it does not know this link's key: it belongs to another run, or to another program")

// prover makes and checks the proofs of one connection.
type prover struct {
	conn     net.Conn
	key      []byte
	exporter []byte
	hellos   []byte // both, in their order
}

func newProver(conn net.Conn, key []byte) (*prover, error) {
	exporter, err := exporterOf(conn)
	return &prover{conn: conn, key: key, exporter: exporter}, err
}

func (p *prover) proof(text string) []byte {
	m := hmac.New(sha256.New, p.key)
	m.Write([]byte(text))
	m.Write(p.hellos)
	m.Write(p.exporter)
	return m.Sum(nil)
}

// check reads a proof.
func (p *prover) check(text string) error {
	got := make([]byte, sha256.Size)
	if _, err := io.ReadFull(p.conn, got); err != nil {
		return fmt.Errorf("it ends without a proof: %w", err)
	}
	if !hmac.Equal(got, p.proof(text)) {
		return errStranger
	}
	return nil
}

// nonce appends 32 random bytes to the hellos, and returns them.
func (p *prover) nonce() []byte {
	n := make([]byte, nonceSize)
	_, _ = rand.Read(n) // never fails
	p.hellos = append(p.hellos, n...)
	return n
}

// greet is the second end's part up to the proof that the first end has the key. If the connection is the one to use,
// the second end then calls confirm.
func (h hello) greet(conn net.Conn, key []byte) (*prover, error) {
	p, err := newProver(conn, key)
	if err != nil {
		return nil, err
	}
	p.hellos = binary.LittleEndian.AppendUint32(nil, proofMagic)
	p.hellos = append(p.hellos, proofVersion, byte(h.stream), byte(h.streams), 0)
	p.hellos = binary.LittleEndian.AppendUint64(p.hellos, h.session)
	p.nonce()
	if _, err := conn.Write(p.hellos); err != nil {
		return nil, err
	}
	theirs := make([]byte, nonceSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return nil, fmt.Errorf("no answer to the hello: %w", err)
	}
	p.hellos = append(p.hellos, theirs...)
	return p, p.check("first")
}

// confirm proves that the second end has the key, and waits until the first end has accepted the connection.
func (p *prover) confirm() error {
	if _, err := p.conn.Write(p.proof("second")); err != nil {
		return err
	}
	return p.check("accepted")
}

// errUnused reports a connection that the second end closed because it uses another one.
var errUnused = errors.New("the second end uses another connection")

// isClosed reports whether err says that the other end has closed the connection. A close resets a connection of which
// not all has been read.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// verifyHello is the first end's part. It returns what the connection is for.
func verifyHello(conn net.Conn, key []byte, streams int) (hello, error) {
	p, err := newProver(conn, key)
	if err != nil {
		return hello{}, err
	}
	msg := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, msg); err != nil {
		return hello{}, fmt.Errorf("it ends without a hello: %w", err)
	}
	if binary.LittleEndian.Uint32(msg) != proofMagic {
		return hello{}, errStranger
	}
	if err := mismatch("version of the hello", msg[4], proofVersion); err != nil {
		return hello{}, err
	}
	h := hello{stream: int(msg[5]), streams: int(msg[6]), session: binary.LittleEndian.Uint64(msg[8:])}
	p.hellos = msg
	mine := p.nonce()
	_, err = conn.Write(append(mine, p.proof("first")...))
	if err == nil {
		err = p.check("second")
	}
	switch {
	case isClosed(err):
		return hello{}, errUnused
	case err != nil:
		return hello{}, err
	}
	if h.streams != streams || h.stream >= streams {
		return hello{}, fmt.Errorf("socket %d of %d, want %d", h.stream, h.streams, streams)
	}
	_, err = conn.Write(p.proof("accepted"))
	return h, err
}
