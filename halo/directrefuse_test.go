package halo_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	. "jacobi/halo"
)

// TestDirectRefusesAccept checks what the second end refuses, and that the first end still takes the right one.
func TestDirectRefusesAccept(t *testing.T) {
	s := serve(t, server.Options{})
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	for name, c := range map[string]struct {
		encrypt bool
		change  func(*DirectOffer)
		want    string
	}{
		"another key": {false, func(o *DirectOffer) { o.Key = make([]byte, 32) }, "it does not know this link's key"},
		"another key, encrypted": {true, func(o *DirectOffer) { o.Key = make([]byte, 32) },
			"it does not know this link's key"},
		"short key": {false, func(o *DirectOffer) { o.Key = o.Key[:16] }, "bytes of the link's key 16, want 32"},
		"another certificate": {true, func(o *DirectOffer) {
			o.Certificate, _ = AnotherCertificate()
		}, "tls: failed to verify certificate"},
		"damaged certificate": {true, func(o *DirectOffer) { o.Certificate = []byte("x") }, "certificate of the offer"},
		"no encryption":       {true, func(o *DirectOffer) { o.Certificate = nil }, "encryption false, want true"},
		"many sockets":        {false, func(o *DirectOffer) { o.Streams = 17 }, "17 sockets are offered"},
		"no address":          {false, func(o *DirectOffer) { o.Addresses = nil }, "0 addresses are offered"},
		"silent listener": {false, func(o *DirectOffer) { o.Addresses = []string{stranger.Addr().String()} },
			"no answer to the hello"},
		"closed port": {false, func(o *DirectOffer) { o.Addresses = []string{"127.0.0.1:1"} }, "connection refused"},
		"trust":       {false, func(o *DirectOffer) { o.Trusted = true }, "trusted network true, want false"},
	} {
		t.Run(name, func(t *testing.T) {
			o := directOptions()
			o.Encrypt, o.NATS.Conn = c.encrypt, s.connect(t)
			e := freshEnd(8, 8)
			a, offer := offered(t, o, e)
			if l, err := (Direct{Options: o}).Accept(e.Facing(), changed(t, offer, c.change)); err == nil {
				closeAfter(t, l)
				t.Fatal("accepted")
			} else if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			both(t, a, accepted(t, o, e, offer), e, 0, 3, nil)
		})
	}
}

// TestDirectStrangers lets others connect to the first end: they are refused with clear words, and the link works.
func TestDirectStrangers(t *testing.T) {
	s := serve(t, server.Options{})
	greeting := func(text string) func(*testing.T, net.Conn, DirectOffer) {
		return func(t *testing.T, c net.Conn, _ DirectOffer) {
			if _, err := io.WriteString(c, text); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		act  func(*testing.T, net.Conn, DirectOffer)
		want string
	}{
		"port scanner": {func(_ *testing.T, c net.Conn, _ DirectOffer) { _ = c.Close() },
			"it ends without a hello: EOF"},
		"half open":  {func(*testing.T, net.Conn, DirectOffer) {}, "it ends without a hello: read tcp"},
		"web client": {greeting("GET / HTTP/1.1\r\nHost: localhost:80\r\nAccept: */*\r\n\r\n"), ErrStranger.Error()},
		"another version": {greeting("JDIR\x02" + strings.Repeat("x", HelloSize-5)),
			"version of the hello 2, want 1"},
		"another run": {func(t *testing.T, c net.Conn, _ DirectOffer) {
			hello := append([]byte("JDIR\x01\x00\x01\x00"), make([]byte, HelloSize-8)...)
			if _, err := c.Write(hello); err != nil {
				t.Error(err)
			}
			if _, err := io.CopyN(c, zeros{}, 32); err != nil {
				t.Error(err)
			}
		}, ErrStranger.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			o := directOptions()
			o.DialTimeout = 300 * time.Millisecond
			o.NATS.Conn, o.NATS.Log = s.connect(t), zap.New(core)
			e := freshEnd(8, 8)
			a, raw := offered(t, o, e)
			var offer DirectOffer
			if err := json.Unmarshal(raw, &offer); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", offer.Addresses[0])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c.act(t, conn, offer)
			until(t, "the connection is refused", func() bool { return a.DirectStats().Refused == 1 })
			entry := logs.FilterMessage("refused a connection; further ones are only counted").All()
			if len(entry) != 1 || !strings.Contains(entry[0].ContextMap()["error"].(string), c.want) {
				t.Errorf("logged %v, want %q", entry, c.want)
			}
			o.DialTimeout = long
			both(t, a, accepted(t, o, e, raw), e, 0, 3, nil)
		})
	}
}

// TestDirectUnused closes connections after the hello, as the second end closes those that lost a race. They are no
// strangers.
func TestDirectUnused(t *testing.T) {
	for name, read := range map[string]int64{"answer read": 64, "answer not read": 1} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			verified := make(chan error, 1)
			go func() { verified <- VerifyHello(server) }()
			hello := append([]byte("JDIR\x01\x00\x01\x00"), make([]byte, HelloSize-8)...)
			if _, err := client.Write(hello); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, client, read); err != nil {
				t.Fatal(err)
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-verified; !errors.Is(err, ErrUnused) {
				t.Errorf("got %v, want %v", err, ErrUnused)
			}
		})
	}
}

// zeros reads as zero bytes without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// connectByHand makes the socket of a link without its second end.
func connectByHand(t *testing.T, o DirectOptions, e End) (*FramedLink, net.Conn) {
	t.Helper()
	a, offer := offered(t, o, e)
	conn, err := ConnectByHand(e, offer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	until(t, "the connection is taken", a.Live)
	return a, conn
}

// TestDirectRefusesFrames sends a link frames that are not as agreed. They end the session and change nothing.
func TestDirectRefusesFrames(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(8, 8)
	for want, stray := range DirectStrays(e) {
		t.Run(want, func(t *testing.T) {
			o := directOptions()
			o.NATS.Conn, o.NATS.Timeout = s.connect(t), 200*time.Millisecond
			a, conn := connectByHand(t, o, e)
			if _, err := conn.Write(stray); err != nil {
				t.Fatal(err)
			}
			until(t, "the session ends", func() bool { return a.DirectStats().Lost == 1 })
			if got := a.DirectStats().Reason; !strings.Contains(got, want) {
				t.Errorf("it ended with %q, want %q", got, want)
			}
			err := a.Recv(t.Context(), 0, make([]byte, e.RecvBytes()))
			var timeout *TimeoutError
			if !errors.As(err, &timeout) || !strings.Contains(err.Error(), "1 frames were refused") {
				t.Errorf("got %v, want a timeout that names the refusal", err)
			}
		})
	}
}
