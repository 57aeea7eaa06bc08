package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// frameFaults are the probabilities of faults that a proxy causes in frames from ranks.
type frameFaults struct {
	drop, duplicate, reorder, delay float64
	maxDelay                        time.Duration
}

// proxy is between the ranks and their NATS server. It parses enough of the protocol to drop, duplicate, delay and
// reorder whole messages from the ranks.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string // host:port
	faults   frameFaults

	mu    sync.Mutex
	rand  *rand.Rand
	conns map[string]net.Conn // of clients, by name
	hits  int                 // messages and connections with a fault
	wait  sync.WaitGroup
}

// newProxy starts a proxy in front of server. The proxy ends with the test.
func newProxy(t *testing.T, server string, seed uint64, f frameFaults) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: l, server: server, faults: f, rand: rand.New(rand.NewPCG(seed, 2)),
		conns: map[string]net.Conn{}}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.wait.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil { // the server is restarting
			client.Close()
			continue
		}
		name := client.RemoteAddr().String()
		p.mu.Lock()
		p.conns[name] = client
		p.mu.Unlock()
		p.wait.Go(func() {
			_, _ = io.Copy(client, server) // both sides end together
			client.Close()
		})
		p.wait.Go(func() {
			_ = p.forward(server, bufio.NewReader(client), name)
			server.Close()
			client.Close()
		})
	}
}

// forward forwards the messages of a client to the server.
func (p *proxy) forward(server io.Writer, client *bufio.Reader, key string) error {
	var held []byte // a message to send after the next one
	for {
		line, err := client.ReadBytes('\n')
		if err != nil {
			return err
		}
		verb, rest, _ := strings.Cut(string(bytes.TrimSpace(line)), " ")
		switch strings.ToUpper(verb) {
		case "PUB", "HPUB":
			words := strings.Fields(rest)
			n, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return err
			}
			body := make([]byte, n+2)
			if _, err := io.ReadFull(client, body); err != nil {
				return err
			}
			message := append(line, body...)
			times, later := p.judge(words[0])
			if later && held == nil {
				held = message
				continue
			}
			for range times {
				if _, err := server.Write(message); err != nil {
					return err
				}
			}
			message, held = held, nil
			if _, err := server.Write(message); err != nil {
				return err
			}
			continue
		case "CONNECT":
			p.remember(rest, key)
		}
		if _, err := server.Write(line); err != nil {
			return err
		}
	}
}

// judge decides how many times to send a message and whether to send it after the next one. It sleeps if the message is
// to be delayed.
func (p *proxy) judge(subject string) (times int, later bool) {
	if !strings.Contains(subject, ".halo.") && !strings.Contains(subject, ".x.sum.") &&
		!strings.Contains(subject, ".post.") {
		return 1, false
	}
	p.mu.Lock()
	hit := func(probability float64) bool { return p.rand.Float64() < probability }
	f := p.faults
	drop, duplicate, reorder, delay := hit(f.drop), hit(f.duplicate), hit(f.reorder), hit(f.delay)
	wait := time.Duration(p.rand.Float64() * float64(f.maxDelay))
	if drop || duplicate || reorder || delay {
		p.hits++
	}
	p.mu.Unlock()
	switch {
	case drop:
		return 0, false
	case delay:
		time.Sleep(wait) // the fault itself
	case duplicate:
		return 2, false
	}
	return 1, reorder
}

// remember stores a connection under the name in the client's CONNECT.
func (p *proxy) remember(options, key string) {
	_, rest, _ := strings.Cut(options, `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.conns[key]; c != nil && name != "" {
		delete(p.conns, key)
		p.conns[name] = c
	}
}

// cut breaks the connection of a rank.
func (p *proxy) cut(rank int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conns[fmt.Sprintf("jacobi-rank %d", rank)]
	if c == nil {
		return fmt.Errorf("rank %d has no connection", rank)
	}
	p.hits++
	return c.Close()
}

// harmed returns the number of messages and connections with a fault.
func (p *proxy) harmed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}
