package halo

import (
	"encoding/json"
	"net"

	"jacobi/solver"
)

// What tests of links over TCP see of them.
const (
	HelloSize = helloSize
)

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

// DirectStrays returns what the end facing e could send by mistake, by why e must refuse it.
func DirectStrays(e End) map[string][]byte {
	there := e.Facing()
	payload := make([]byte, there.SendBytes())
	changed := func(change func(*frame)) []byte {
		f := there.frame(kindRows, 0)
		f.total = uint64(len(payload))
		change(&f)
		msg := make([]byte, headerSize+len(payload))
		f.put(msg, payload)
		return msg
	}
	damaged, oversized := changed(func(*frame) {}), changed(func(*frame) {})
	damaged[100] ^= 4
	unpackable := make([]byte, headerSize+8)
	g := there.frame(kindPacked, 0)
	g.total = uint64(len(payload))
	g.put(unpackable, make([]byte, 8))
	f := there.frame(kindRows, 0)
	f.total = uint64(len(payload))
	f.header(oversized, 1<<31)
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
