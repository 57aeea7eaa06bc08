package halo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	. "jacobi/halo"
	"jacobi/internal/base/ballast"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// envPeer has the peerOrder of a process that BenchmarkProcesses starts from this binary.
const envPeer = "JACOBI_HALO_TEST_PEER"

func TestMain(m *testing.M) {
	order := os.Getenv(envPeer)
	if order == "" {
		os.Exit(m.Run())
	}
	if err := peer(order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const benchRun = "bench"

// address is a configs.NATS whose JSON has the secrets.
type address configs.NATS

// peerOrder says what a process is: a server of NATS if there is no URL, or the second end of a link.
type peerOrder struct {
	Server  address
	End     End             // of the second end
	Raw     string          // address of a bare socket
	Offer   json.RawMessage `json:",omitempty"` // of a link over TCP; empty: NATS
	Encrypt bool
	Trusted bool
}

// peer serves until standard input ends, or exchanges rows as often as each line of it says.
func peer(order string) error {
	var o peerOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	if o.Server.URL == "" {
		return servePeer()
	}
	conn, err := o.connect(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	b := ballast.New() // as Links have it
	defer runtime.KeepAlive(b)
	l, err := o.open(conn)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	next := solver.ExchangeNumber(0)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var n int
		if _, err := fmt.Sscan(in.Text(), &n); err != nil {
			return err
		}
		if _, err := exchangeRows(context.Background(), l, o.End, &next, n); err != nil {
			return err
		}
	}
	return l.Close()
}

func servePeer() error {
	s, err := natsserver.Start(natsserver.Options{RunID: benchRun, Log: zap.NewNop()})
	if err != nil {
		return err
	}
	defer s.Close()
	at, err := json.Marshal(address(s.NATS()))
	if err != nil {
		return err
	}
	fmt.Println(string(at))
	bufio.NewScanner(os.Stdin).Scan() // ends with the benchmark
	return nil
}

func (o *peerOrder) connect(ctx context.Context) (*wire.Conn, error) {
	return wire.Connect(ctx, wire.Options{Server: configs.NATS(o.Server), RunID: benchRun, Timeout: 10 * time.Second})
}

func (o *peerOrder) open(conn *wire.Conn) (Link, error) {
	if o.Raw != "" {
		c, err := net.Dial("tcp", o.Raw)
		return bareLink{c}, err
	}
	n := NATSOptions{Prefix: "jacobi." + benchRun, Conn: conn, Timeout: long}
	if len(o.Offer) == 0 {
		n.Dial = func(ctx context.Context) (pubsub.Conn, error) { return o.connect(ctx) }
		return NewNATS(context.Background(), o.End, n)
	}
	return Direct{Options: DirectOptions{Encrypt: o.Encrypt, Trusted: o.Trusted, NATS: n}}.Accept(o.End, o.Offer)
}

// exchangeRows makes n exchanges and returns the time of each.
func exchangeRows(ctx context.Context, l Link, e End, next *solver.ExchangeNumber, n int) ([]time.Duration, error) {
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	times := make([]time.Duration, 0, n)
	for range n {
		begin := time.Now()
		if err := l.Send(ctx, *next, out); err != nil {
			return nil, err
		}
		if err := l.Recv(ctx, *next, in); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
		*next++
	}
	return times, nil
}

// startPeer starts a process, waits for its first line, and returns it with the process's standard input.
func startPeer(b *testing.B, o peerOrder) (line string, pid int, tell func(string)) {
	b.Helper()
	order, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envPeer+"="+string(order))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its context may have ended it
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		b.Fatal("the process ended at once")
	}
	return lines.Text(), cmd.Process.Pid, func(s string) {
		if _, err := fmt.Fprintln(in, s); err != nil {
			b.Error(err)
		}
	}
}

// processorTime returns the time that processes have used of all cores.
func processorTime(b *testing.B, pids ...int) (total time.Duration) {
	b.Helper()
	for _, pid := range pids {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { // see clock_getcpuclockid(3)
			b.Fatal(err)
		}
		total += time.Duration(t.Nano())
	}
	return total
}

// bareLink is what the wire can do: a socket without frames.
type bareLink struct{ net.Conn }

func (l bareLink) Send(_ context.Context, _ solver.ExchangeNumber, rows []byte) error {
	go func() { _, _ = l.Write(rows) }() // Recv on the other end reports a failure
	return nil
}

func (l bareLink) Recv(_ context.Context, _ solver.ExchangeNumber, rows []byte) error {
	_, err := io.ReadFull(l.Conn, rows)
	return err
}

// processCase is a way between two processes.
type processCase struct {
	name   string
	bare   bool
	secret string
	direct *DirectOptions // nil: NATS
}

// BenchmarkProcesses exchanges rows between two processes, with the server in a third one, and reports the median of an
// exchange, from Send until Recv returns, and what an exchange costs the processors of all three.
func BenchmarkProcesses(b *testing.B) {
	for _, c := range []processCase{
		{name: "socket", bare: true},
		{name: "direct", direct: &DirectOptions{Trusted: true, Streams: 1}},
		{name: "direct, two sockets", direct: &DirectOptions{Trusted: true, Streams: 2}},
		{name: "direct, four sockets", direct: &DirectOptions{Trusted: true, Streams: 4}},
		{name: "direct, checksums", direct: &DirectOptions{Streams: 1}},
		{name: "direct, encrypted", direct: &DirectOptions{Encrypt: true, Streams: 1}},
		{name: "direct, two sockets, encrypted", direct: &DirectOptions{Encrypt: true, Streams: 2}},
		{name: "direct, four sockets, encrypted", direct: &DirectOptions{Encrypt: true, Streams: 4}},
		{name: "nats"},
		{name: "nats, sealed", secret: "inline:0123456789abcdef0123456789abcdef"},
	} {
		for _, kib := range []int{8, 128, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/%dKiB", c.name, kib), func(b *testing.B) {
				benchmarkProcesses(b, c, kib<<7)
			})
		}
	}
}

func benchmarkProcesses(b *testing.B, c processCase, values int) {
	at, server, _ := startPeer(b, peerOrder{})
	e := freshEnd(values, 1)
	order := peerOrder{End: e}
	if err := json.Unmarshal([]byte(at), &order.Server); err != nil {
		b.Fatal(err)
	}
	order.Server.SecretFile = c.secret
	conn, err := order.connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	own := ballast.New() // as Links have it
	defer runtime.KeepAlive(own)
	var l Link
	var listener net.Listener
	switch {
	case c.bare:
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			order.Raw = listener.Addr().String()
		}
	case c.direct == nil:
		l, err = order.open(conn)
	default:
		o := *c.direct
		o.Listen.Where = "127.0.0.1"
		o.NATS = NATSOptions{Prefix: "jacobi." + benchRun, Conn: conn, Timeout: long}
		order.Encrypt, order.Trusted = o.Encrypt, o.Trusted
		l, order.Offer, err = Direct{Options: o}.Offer(e)
	}
	if err != nil {
		b.Fatal(err)
	}
	order.End = e.Facing()
	_, neighbour, tell := startPeer(b, order)
	if c.bare {
		accepted, err := listener.Accept()
		if err != nil {
			b.Fatal(err)
		}
		l = bareLink{accepted}
	}
	closeAfter(b, l)
	next := solver.ExchangeNumber(0)
	run := func(n int) []time.Duration {
		tell(fmt.Sprint(n))
		times, err := exchangeRows(b.Context(), l, e, &next, n)
		if err != nil {
			b.Fatal(err)
		}
		return times
	}
	run(20)
	b.SetBytes(int64(16 * values))
	before := processorTime(b, os.Getpid(), neighbour, server)
	b.ResetTimer()
	times := run(b.N)
	b.StopTimer()
	used := processorTime(b, os.Getpid(), neighbour, server) - before
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us")
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "median-us")
}
