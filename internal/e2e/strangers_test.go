package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/halo"
	"jacobi/internal/base/proctest"
)

// strangersAtOnce is the number of connections at a time that a link takes before they prove to be its own.
const strangersAtOnce = 16

// Strangers at the port of a link, silent ones, loud ones and a thousand of them, and a client of the server that
// publishes on the run's subjects change nothing: the rows keep their way, every attempt is counted, and neither memory
// nor descriptors grow with the attempts.
func TestStrangersAtALink(t *testing.T) {
	needHosts(t)
	for _, encrypt := range []string{"always", "never"} {
		t.Run("encrypt "+encrypt, func(t *testing.T) { testStrangers(t, encrypt) })
	}
}

func testStrangers(t *testing.T, encrypt string) {
	t.Parallel()
	u, dir := startServer(t), t.TempDir()
	for range 2 { // two nodes
		startAgentBy(t, []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}, dir, u, "--slots", "1")
	}
	at := fmt.Sprint("127.0.0.1:", proctest.Port(t))
	const foreign = 1000 // messages
	l := begin(t, dir, onNodes(u, onRanks(2, "problem.preset=dirichlet", "halo.transport=direct",
		"halo.direct.listen="+at, "halo.direct.encrypt="+encrypt)...)...)
	publishAsStranger(t, u, foreign, "halo.0.bottom", "halo.1.top.ask")
	before := openFiles(t, l)
	connections, most := connectAsStrangers(t, l, at, encrypt == "always")
	l.signal(os.Interrupt)
	code, output := l.end()
	if n := strings.Count(output, "refused a connection; further ones are only counted"); code != 130 || n != 1 {
		t.Fatalf("exit code %d and %d warnings of strangers, want 130 and 1\n%s", code, n, output)
	}
	r := readReport(t, dir+"/out")
	listens, connects := r.Ranks[0].Transports["bottom"], r.Ranks[1].Transports["top"]
	if !listens.keptFromStrangers() || listens.Direct.Refused != connections ||
		!connects.keptFromStrangers() || connects.Direct.Refused != 0 {
		t.Errorf("links %+v and %+v, want %d strangers at the first one and no socket lost to them", listens.Direct,
			connects.Direct, connections)
	}
	for _, k := range r.Ranks {
		if k.RefusedMessages != foreign {
			t.Errorf("rank %d refused %d messages, want %d", k.Rank, k.RefusedMessages, foreign)
		}
	}
	want := fmt.Sprintf("  Refused: 2,000 messages and %d,%03d connections of others", connections/1000,
		connections%1000)
	if !strings.Contains(output, want) {
		t.Errorf("the summary does not say %q\n%s", want, output)
	}
	if limit := r.Ranks[1].RSSBytes + 32<<20; r.Ranks[0].RSSBytes > limit {
		t.Errorf("rank 0, which listens, took %d bytes of memory, want at most %d", r.Ranks[0].RSSBytes, limit)
	}
	if most > before+strangersAtOnce+8 {
		t.Errorf("the ranks had up to %d open files, and %d before the strangers came", most, before)
	}
}

// takenPort returns an address of this machine at which the test listens until it ends.
func takenPort(t *testing.T) string { return listen(t).Addr().String() }

// listen listens at a free port of this machine until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// publishAsStranger publishes n messages that are not sealed on each of these subjects of the links of the run at the
// server.
func publishAsStranger(t *testing.T, u *url.URL, n int, subjects ...string) {
	t.Helper()
	stranger, err := nats.Connect(u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	heard, err := stranger.SubscribeSync("jacobi.*.>")
	if err != nil {
		t.Fatal(err)
	}
	run := "nodes"
	for run == "nodes" { // the agents' own subjects
		m, err := heard.NextMsg(limit)
		if err != nil {
			t.Fatal(err)
		}
		run = strings.Split(m.Subject, ".")[1]
	}
	links := "jacobi." + run + ".x." + halo.RunIDOf(run+"/").String() + "."
	for i := range n {
		for _, s := range subjects {
			if err := stranger.Publish(links+s, bytes.Repeat([]byte("JHLO"), i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
}

// openFiles returns the number of files that the ranks of a run have open.
func openFiles(t *testing.T, l *live) (n int) {
	t.Helper()
	for _, pid := range l.allRanks(2) {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		n += len(entries)
	}
	return n
}

// connectAsStrangers makes connections to the first end of a link, and returns their number and the most files that the
// ranks had open meanwhile. It returns when all connections have been closed there.
func connectAsStrangers(t *testing.T, l *live, at string, encrypted bool) (connections, mostFiles int) {
	t.Helper()
	secure := func(c net.Conn) net.Conn {
		if encrypted {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		}
		return c
	}
	acts := []func(net.Conn) error{
		func(net.Conn) error { return nil }, // silent
		func(c net.Conn) error { _, err := c.Write(bytes.Repeat([]byte("garbage "), 1<<17)); return err },
		endlessHello,
		func(c net.Conn) error { return truncatedProof(secure(c)) },
		func(c net.Conn) error { return c.(*net.TCPConn).CloseWrite() },
	}
	var all sync.WaitGroup
	connect := func(act func(net.Conn) error) {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Error(err)
			return
		}
		connections++
		all.Go(func() {
			defer c.Close()
			if err := errors.Join(c.SetDeadline(time.Now().Add(limit)), act(c)); err != nil && !closed(err) {
				t.Error(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !closed(err) {
				t.Errorf("a stranger waits for the end of its connection: %v", err)
			}
		})
	}
	for _, act := range acts {
		for range 4 {
			connect(act)
		}
	}
	all.Wait()
	for i := range 1000 {
		connect(acts[i%2]) // silent and loud
		if i%50 == 0 {
			mostFiles = max(mostFiles, openFiles(t, l))
		}
	}
	all.Wait()
	return connections, mostFiles
}

// closed reports whether err tells that the other end has closed the connection.
func closed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}

// endlessHello sends the beginning of a TLS handshake that never ends.
func endlessHello(c net.Conn) error {
	record := append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 1<<14-4)...)
	for {
		if _, err := c.Write(record); err != nil {
			return err
		}
	}
}

// truncatedProof greets in the format of a link, and ends in the middle of its proof.
func truncatedProof(c net.Conn) error {
	hello := binary.LittleEndian.AppendUint32(nil, 0x5249444a)
	hello = append(append(hello, 1, 0, 1, 0), make([]byte, 40)...)
	if _, err := c.Write(hello); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, 64)); err != nil { // its random bytes and its proof
		return err
	}
	if _, err := c.Write(make([]byte, 10)); err != nil {
		return err
	}
	return c.(interface{ CloseWrite() error }).CloseWrite()
}
