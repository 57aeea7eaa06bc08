package halo

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

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
	if _, err := conn.Write(append(mine, p.proof("first")...)); err != nil {
		return hello{}, err
	}
	if err := p.check("second"); errors.Is(err, io.EOF) {
		return hello{}, errUnused
	} else if err != nil {
		return hello{}, err
	}
	if h.streams != streams || h.stream >= streams {
		return hello{}, fmt.Errorf("socket %d of %d, want %d", h.stream, h.streams, streams)
	}
	_, err = conn.Write(p.proof("accepted"))
	return h, err
}
