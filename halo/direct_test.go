package halo_test

import (
	"encoding/json"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	. "jacobi/halo"
	"jacobi/solver"
)

// proxy forwards connections to a listener, until a test breaks them.
type proxy struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	silent bool // takes connections and bytes, and passes none on
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, d)
			p.mu.Unlock()
			p.running.Go(func() { p.pass(c, d) })
			p.running.Go(func() { p.pass(d, c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.running.Wait()
	})
	return p
}

func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		silent := p.silent
		p.mu.Unlock()
		if err == nil && !silent {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) setSilent(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = on
}

func directOptions() DirectOptions {
	return DirectOptions{Listen: ListenAt{Where: "127.0.0.1"}, NATS: impatient(), DialTimeout: time.Second}
}

// changed returns an offer that a test has changed.
func changed(t *testing.T, raw json.RawMessage, change func(*DirectOffer)) json.RawMessage {
	t.Helper()
	var o DirectOffer
	err := json.Unmarshal(raw, &o)
	if err == nil {
		change(&o)
		raw, err = json.Marshal(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// offered opens the first end of a link, and returns its offer.
func offered(t *testing.T, o DirectOptions, e End) (*FramedLink, json.RawMessage) {
	t.Helper()
	l, offer, err := Direct{Options: o}.Offer(e)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	return l.(*FramedLink), offer
}

// accepted opens the second end of the link whose first end is e.
func accepted(t *testing.T, o DirectOptions, e End, offer json.RawMessage) *FramedLink {
	t.Helper()
	l, err := Direct{Options: o}.Accept(e.Facing(), offer)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	return l.(*FramedLink)
}

// throughProxy opens a link whose sockets go through a proxy.
func throughProxy(t *testing.T, s testServer, e End, o DirectOptions) (a, b *FramedLink, p *proxy) {
	t.Helper()
	o.NATS.Conn = s.connect(t)
	a, offer := offered(t, o, e)
	offer = changed(t, offer, func(o *DirectOffer) {
		p = newProxy(t, o.Addresses[0])
		o.Addresses = []string{p.listener.Addr().String()}
	})
	o.NATS.Conn = s.connect(t)
	return a, accepted(t, o, e, offer), p
}

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for start := time.Now(); !met(); runtime.Gosched() {
		if time.Since(start) > long {
			t.Fatal(what + ": it does not happen")
		}
	}
}

// TestDirectBrokenSocket cuts the sockets again and again. All rows must arrive, and the sockets must come back.
func TestDirectBrokenSocket(t *testing.T) {
	s := serve(t, server.Options{})
	for name, change := range map[string]func(*DirectOptions){
		"plain":     func(*DirectOptions) {},
		"encrypted": func(o *DirectOptions) { o.Encrypt, o.Streams = true, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := directOptions()
			o.DialTimeout = long // an end that gives a handshake up is a stranger to the other one
			change(&o)
			e := freshEnd(1000, 4)
			a, b, p := throughProxy(t, s, e, o)
			for round := range solver.ExchangeNumber(4) {
				both(t, a, b, e, 30*round, 30, func(rank int, exchange solver.ExchangeNumber) {
					if rank == e.Rank && exchange == 30*round+10 && round < 3 {
						p.cut()
					}
				})
				if round < 3 {
					until(t, "both ends lose the sockets", func() bool {
						return a.DirectStats().Lost > uint64(round) && b.DirectStats().Lost > uint64(round)
					})
				}
				until(t, "the sockets come back", func() bool { return a.Live() && b.Live() })
			}
			for _, l := range []*FramedLink{a, b} {
				if n := l.DirectStats(); n.Lost < 3 || n.Reason == "" || n.Refused != 0 {
					t.Errorf("%+v, want sockets lost 3 times or more and why, and no stranger", n)
				}
			}
		})
	}
}

// TestDirectWarnsOfLoss checks that a rank warns once of lost sockets when rows go over NATS, and not of those that its
// neighbour closes at the end.
func TestDirectWarnsOfLoss(t *testing.T) {
	s := serve(t, server.Options{})
	for name, c := range map[string]struct {
		lose func(b *FramedLink, p *proxy)
		more solver.ExchangeNumber // exchanges after the loss
		want int
	}{
		"neighbour ends": {func(b *FramedLink, _ *proxy) { _ = b.Close() }, 0, 0},
		"cut": {func(_ *FramedLink, p *proxy) {
			_ = p.listener.Close() // no new connection
			p.cut()
		}, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			o := directOptions()
			o.NATS.Log = zap.New(core)
			e := freshEnd(8, 8)
			a, b, p := throughProxy(t, s, e, o)
			both(t, a, b, e, 0, 3, nil)
			c.lose(b, p)
			until(t, "the sockets break", func() bool { return !a.Live() && !b.Live() })
			both(t, a, b, e, 3, c.more, nil)
			if got := logs.FilterMessageSnippet("lost the socket; rows go over NATS").Len(); got != c.want {
				t.Errorf("%d warnings, want %d: %v", got, c.want, logs.All())
			}
		})
	}
}

// TestDirectSilentSocket has the sockets take bytes and deliver none, as after a cable was cut. The rows must go over
// NATS then, and over sockets again when these deliver.
func TestDirectSilentSocket(t *testing.T) {
	s := serve(t, server.Options{})
	o := directOptions()
	o.DialTimeout = 500 * time.Millisecond
	e := freshEnd(100, 4)
	a, b, p := throughProxy(t, s, e, o)
	both(t, a, b, e, 0, 5, nil)
	p.setSilent(true)
	both(t, a, b, e, 5, 30, nil)
	x, y := a.DirectStats(), b.DirectStats()
	if why := x.Reason + y.Reason; x.OverNATS+y.OverNATS == 0 ||
		!strings.Contains(why, "the socket is silent, while rows come over NATS") &&
			!strings.Contains(why, "the neighbour had the rows over NATS before the socket took them") {
		t.Errorf("%+v and %+v, want silent sockets given up", x, y)
	}
	p.setSilent(false)
	until(t, "the sockets come back", func() bool { return a.Live() && b.Live() })
	both(t, a, b, e, 35, 5, nil)
}

// TestDirectSlowReader sends to an end that reads nothing. Send must not wait, nor Close.
func TestDirectSlowReader(t *testing.T) {
	s := serve(t, server.Options{})
	e := freshEnd(1<<17, 16) // exchanges of 16 MiB, more than the buffers of a socket
	o := directOptions()
	o.NATS.Conn, o.Streams = s.connect(t), 1
	a, _ := connectByHand(t, o, e)
	rows := make([]byte, e.SendBytes())
	for exchange := range solver.ExchangeNumber(2) {
		if err := a.Send(t.Context(), exchange, rows); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.Unwritten(0); n != 1 {
		t.Errorf("%d parts are being written, want 1", n)
	}
	// A neighbour that has received exchange 1 by another way no longer needs the memory of exchange 0.
	if err := a.Send(t.Context(), 2, rows); err != nil {
		t.Fatal(err)
	}
	if n := a.DirectStats(); n.Lost != 1 || n.OverNATS != 1 ||
		!strings.Contains(n.Reason, "before the socket took them") {
		t.Errorf("%+v, want the socket given up", n)
	}
}

// TestDirectSockets checks how many sockets a link takes: one core fills the wire up to a size, which TLS lowers.
func TestDirectSockets(t *testing.T) {
	s := serve(t, server.Options{})
	for _, c := range []struct {
		kib     int
		encrypt bool
		want    int
	}{{8, false, 1}, {511, false, 1}, {512, false, 2}, {1024, false, 4}, {127, true, 1}, {128, true, 2}, {256, true,
		4}} {
		o := directOptions()
		o.Encrypt, o.NATS.Conn = c.encrypt, s.connect(t)
		e := freshEnd(c.kib<<7, 1)
		a, b, err := openDirect(t, e, e.Facing(), o, s.connect(t), s.connect(t))
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, a, b)
		if got := a.(*FramedLink).DirectStats().Sockets; got != c.want {
			t.Errorf("%d KiB, encrypted %t: %d sockets, want %d", c.kib, c.encrypt, got, c.want)
		}
		both(t, a, b, e, 0, 3, nil)
	}
}

// TestDirectListens checks where the first end listens.
func TestDirectListens(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	const want = "127.0.0.1"
	for _, where := range []string{want, "127.0.0.0/8", "lo"} {
		l, addresses, err := Listen(ListenAt{Where: where})
		if err != nil {
			t.Fatal(err)
		}
		host, _, err := net.SplitHostPort(addresses[0])
		if err != nil || host != want {
			t.Errorf("%s: %v, %v", where, addresses, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		at   ListenAt
		want string
	}{
		{ListenAt{Where: "127.0.0.1", Lo: port, Hi: port}, "address already in use"},
		{ListenAt{Where: "203.0.113.0/24"}, "no address of this machine is in 203.0.113.0/24"},
		{ListenAt{Where: "no-such-if"}, "no-such-if is no address, no network and no interface of this machine"},
	} {
		if l, _, err := Listen(c.at); err == nil || !strings.Contains(err.Error(), c.want) {
			if l != nil {
				_ = l.Close()
			}
			t.Errorf("%+v: %v, want %q", c.at, err, c.want)
		}
	}
}

// TestConnectDirect negotiates links over TCP between ranks that share no memory, and falls back where they cannot
// reach each other.
func TestConnectDirect(t *testing.T) {
	s := serve(t, server.Options{})
	world := func(where string) *world {
		w := newWorld(t, s, ModeDirect, 3, true)
		for r := range w.opts {
			o := directOptions()
			o.Listen.Where, o.NATS = where, w.opts[r].NATS
			w.opts[r].Peers = append(w.opts[r].Peers, Direct{Options: o})
		}
		w.separate(0, 1, "two nodes")
		return w
	}
	w := world("127.0.0.1")
	links := w.connected(t)
	for side, want := range map[solver.Side]Info{solver.Bottom: {TransportDirect, "two nodes, TCP"},
		solver.Top: {TransportShared, "same node, segment mapped"}} {
		if got := links[0].Info[side]; got != want {
			t.Errorf("%v: %+v, want %+v", side, got, want)
		}
	}
	w.exchange(t, links)
	if n := links[1].DirectStats(solver.Top); n == nil || n.Sockets != 1 || n.OverNATS != 0 {
		t.Errorf("%+v", n)
	}

	w = world("no-such-if")
	links = w.connected(t)
	if got := links[1].Info[solver.Top]; got.Transport != TransportNATS ||
		!strings.Contains(got.Why, "direct failed: ") || !strings.Contains(got.Why, "no-such-if is no address") {
		t.Errorf("%+v, want nats and why", got)
	}
	w.exchange(t, links)
}
