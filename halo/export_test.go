package halo

import (
	"crypto/sha256"
	"encoding/json"
	"net"

	"jacobi/solver"
)

// HeaderSize is the length of a frame without rows.
const HeaderSize = headerSize

// changedFrame returns a frame of exchange 0 to e, with a changed header.
func changedFrame(e End, change func(*frame)) []byte {
	there := e.Facing()
	payload := make([]byte, there.SendBytes())
	f := there.frame(kindRows, 0)
	f.total = uint64(len(payload))
	change(&f)
	msg := make([]byte, headerSize+len(payload))
	f.put(msg, payload)
	return msg
}

// NATSFrames returns a frame of exchange 0 to e, and messages that e must refuse.
func NATSFrames(e End) (good []byte, strays [][]byte) {
	changed := func(change func(*frame)) []byte { return changedFrame(e, change) }
	good = changed(func(*frame) {})
	damaged, version := changed(func(*frame) {}), changed(func(*frame) {})
	damaged[100] ^= 4
	version[4] = 9
	return good, [][]byte{
		[]byte("hello"),
		damaged,
		version,
		changed(func(f *frame) { f.run = testRun }),
		changed(func(f *frame) { f.sender = 7 }),
		changed(func(f *frame) { f.receiver = 7 }),
		changed(func(f *frame) { f.side = e.Side }),
		changed(func(f *frame) { f.kind = 9 }),
		changed(func(f *frame) { f.kind = kindAsk }),
		changed(func(f *frame) { f.part, f.parts = 1, 1 }),
		changed(func(f *frame) { f.kind = kindPacked }),
		changed(func(f *frame) { f.total-- }),
		changed(func(f *frame) { f.parts = 2 }),
	}
}

// NATSSubject returns the subject on which e receives frames.
func NATSSubject(o NATSOptions, e End) string { return o.subject(e.Run, "halo", e.Rank, e.Side) }

// HoldFrames keeps a link from handling frames until release is called.
func HoldFrames(l *FramedLink) (release func()) {
	l.in.mu.Lock()
	return l.in.mu.Unlock
}

// HelloSize is the length of a hello.
const HelloSize = helloSize

// DirectOffer is an offer in its decoded form.
type DirectOffer = directOffer

// ErrStranger is why a connection of another run is refused.
var ErrStranger = errStranger

// Live reports whether the link has sockets.
func (l *FramedLink) Live() bool { return l.sockets.live() != nil }

// Unwritten returns the parts of exchange that the sockets have not taken.
func (l *FramedLink) Unwritten(exchange solver.ExchangeNumber) int {
	return int(l.sockets.current.Load().left[exchange%2].Load())
}

// Listen listens as the first end of a link does.
func Listen(at ListenAt) (net.Listener, []string, error) { return listen(at) }

// AnotherCertificate returns a certificate that belongs to no link.
func AnotherCertificate() ([]byte, error) {
	var s sockets
	return s.makeCertificate()
}

// ConnectByHand makes the only socket of a link to the end that has made offer, without a second end.
func ConnectByHand(e End, offer json.RawMessage) (net.Conn, error) {
	var o directOffer
	if err := json.Unmarshal(offer, &o); err != nil {
		return nil, err
	}
	key, err := linkKey(o.Key, nil, e)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", o.Addresses[0])
	if err != nil {
		return nil, err
	}
	p, err := hello{streams: 1}.greet(conn, key)
	if err == nil {
		err = p.confirm()
	}
	return conn, err
}

// ErrUnused is what VerifyHello returns for a connection that its second end does not use.
var ErrUnused = errUnused

// VerifyHello is what the first end does with a connection of a link with one socket.
func VerifyHello(conn net.Conn) error {
	_, err := verifyHello(conn, make([]byte, sha256.Size), 1)
	return err
}

// DirectStrays returns what the end facing e could send by mistake, by why e must refuse it.
func DirectStrays(e End) map[string][]byte {
	changed := func(change func(*frame)) []byte { return changedFrame(e, change) }
	damaged, oversized := changed(func(*frame) {}), changed(func(*frame) {})
	damaged[100] ^= 4
	var f frame
	changed(func(g *frame) { f = *g })
	f.header(oversized, 1<<31)
	unpackable := make([]byte, headerSize+8)
	f.kind = kindPacked
	f.put(unpackable, make([]byte, 8))
	return map[string][]byte{
		"frame with magic 0x0":                  make([]byte, headerSize),
		"frame of run":                          changed(func(f *frame) { f.run = testRun }),
		"bytes of a part 2147483648, want 512":  oversized,
		"part 1048576 of 2097152":               changed(func(f *frame) { f.part, f.parts = 1<<20, 1<<21 }),
		"bytes of a part 512, want 511":         changed(func(f *frame) { f.total-- }),
		"frame kind ask, want rows":             changed(func(f *frame) { f.kind = kindAsk }),
		"frame with checksum":                   damaged,
		"512 bytes of a packed part, want less": changed(func(f *frame) { f.kind = kindPacked }),
		"bytes of packed rows 0, want 512":      unpackable,
	}
}

// TrialLength is how many exchanges of each kind a link tries.
const TrialLength = trialLength
