package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/configs"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
)

const secret = "0123456789abcdef"

// join connects to s as a member of a run. It returns the connection and its log.
func join(t *testing.T, s *rostertest.Server, runID, secret string) (*Conn, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	n := configs.NATS{URL: s.URL()}
	if secret != "" {
		n.SecretFile = configs.Inline(secret)
	}
	c, err := Connect(t.Context(), Options{Server: n, RunID: runID, Timeout: 10 * time.Second, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, logs
}

// A connection of another run takes the seal of a run whose secret it is given.
func TestOfRun(t *testing.T) {
	s := rostertest.Start(t, 0)
	rank, _ := join(t, s, "run", secret)
	agent, _ := join(t, s, "nodes", "what agents and launchers share")
	for _, c := range []struct {
		secret, run string
		opens       bool
	}{{secret, "run", true}, {"another secret 16", "run", false}, {secret, "other", false}} {
		of, err := agent.OfRun(configs.Inline(c.secret), c.run)
		if err != nil {
			t.Fatal(err)
		}
		got := listen(t, of, "jacobi.run.x")
		publish(t, rank, "jacobi.run.x", "of the run")
		publish(t, of, "jacobi.run.x", "own")
		refused := uint64(1)
		if c.opens {
			refused = 0
			want(t, got, "of the run")
		}
		want(t, got, "own")
		if of.Refused() != refused {
			t.Errorf("run %s: %d messages are refused, want %d", c.run, of.Refused(), refused)
		}
	}
}

// listen returns the messages that arrive on subject.
func listen(t *testing.T, c *Conn, subject string) <-chan string {
	t.Helper()
	got := make(chan string, 100)
	if _, err := c.Subscribe(subject, func(m pubsub.Message) { got <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	return got
}

func flush(t *testing.T, c *Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
}

func publish(t *testing.T, c *Conn, subject, text string) {
	t.Helper()
	if err := c.Publish(subject, []byte(text)); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
}

func want(t *testing.T, got <-chan string, text string) {
	t.Helper()
	select {
	case g := <-got:
		if g != text {
			t.Errorf("got %q, want %q", g, text)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%q did not arrive", text)
	}
}

// Messages without the run's secret are refused, and others on the server cannot read the run's messages.
func TestOnlyTheRunIsHeard(t *testing.T) {
	s := rostertest.Start(t, 0)
	a, logs := join(t, s, "r1", secret)
	b, _ := join(t, s, "r1", secret+"\n") // with the line end that an editor adds
	got := listen(t, a, "jacobi.r1.x")
	stranger := s.Dial()
	overheard, err := stranger.SubscribeSync("jacobi.r1.x")
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "jacobi.r1.x", "halo rows")
	want(t, got, "halo rows")
	m, err := overheard.NextMsg(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(m.Data), "halo") || len(m.Data) != len("halo rows")+28 {
		t.Errorf("a stranger reads %q", m.Data)
	}
	// A copy on the same subject is accepted like a duplicate of NATS. On another subject it is refused.
	other := listen(t, a, "jacobi.r1.y")
	flipped := append([]byte{}, m.Data...)
	flipped[len(flipped)/2] ^= 1
	if err := errors.Join(stranger.Publish("jacobi.r1.y", m.Data), stranger.Publish("jacobi.r1.y", nil),
		stranger.PublishRequest("jacobi.r1.x", "jacobi.r1.y", m.Data),
		stranger.Publish("jacobi.r1.x", []byte("abort")), stranger.Publish("jacobi.r1.x", flipped),
		stranger.Flush()); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []struct{ run, secret string }{{"r1", "another secret of a run"}, {"r2", secret},
		{"r1", ""}} {
		c, _ := join(t, s, foreign.run, foreign.secret)
		publish(t, c, "jacobi.r1.x", "abort")
	}
	// The server's answer that nobody listens is none of a stranger.
	if err := a.PublishRequest("jacobi.r1.nobody", "jacobi.r1.y", nil); err != nil {
		t.Fatal(err)
	}
	flush(t, a)
	publish(t, b, "jacobi.r1.x", "more")
	publish(t, b, "jacobi.r1.y", "last")
	want(t, got, "more")
	want(t, other, "last")
	if n := a.Refused(); n != 8 {
		t.Errorf("%d messages refused, want 8", n)
	}
	if logs.Len() != 1 || logs.All()[0].ContextMap()["error"] != "not sealed with this run's secret" {
		t.Errorf("log: %v", logs.All())
	}
}

// A request ignores answers that are not sealed, and an answer goes only to the subject that the request named.
func TestRequest(t *testing.T) {
	s := rostertest.Start(t, 0)
	for _, runSecret := range []string{"", secret} {
		a, _ := join(t, s, "r1", runSecret)
		b, _ := join(t, s, "r1", runSecret)
		stranger := s.Dial()
		seen := make(chan string, 10)
		_, err := b.Subscribe("jacobi.r1.ask", func(m pubsub.Message) {
			seen <- m.Reply
			var fake error
			if runSecret != "" {
				fake = errors.Join(stranger.Publish(m.Reply, []byte("forged")), stranger.Flush())
			}
			if err := errors.Join(fake, b.Publish(m.Reply, append([]byte("you said "), m.Data...))); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		flush(t, b)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m, err := a.RequestWithContext(ctx, "jacobi.r1.ask", []byte("hello"))
		if err != nil || string(m.Data) != "you said hello" {
			t.Errorf("sealed %v: got %v, %v", a.Sealed(), m, err)
		}
		if reply := <-seen; !strings.HasPrefix(reply, "jacobi.r1.inbox.") {
			t.Errorf("answers go to %s, want a subject of the run", reply)
		}
		// Without a responder the request ends with its context.
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := a.RequestWithContext(short, "jacobi.r1.nobody", nil); err == nil {
			t.Error("an answer of nobody")
		}
	}
}

// No key of nats makes Connect wait for a named pipe.
func TestKeysThatNamePipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for key, n := range map[string]configs.NATS{
		"nats.password_file": {User: "u", PasswordFile: pipe},
		"nats.creds":         {Creds: pipe},
		"nats.nkey":          {NKey: pipe},
		"nats.ca":            {CA: pipe},
		"nats.cert":          {Cert: pipe, Key: pipe},
		"nats.secret_file":   {SecretFile: pipe},
	} {
		n.URL = "nats://" + freeAddr(t)
		err := connect(t, Options{Server: n, RunID: "r1", Timeout: time.Second})
		want := key + ": open " + pipe + ": a named pipe, not a regular file"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestSecretsThatAreNone(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		configs.Inline("hunter2"): "nats.secret_file: a secret of 7 bytes; it must have at least 16",
		empty:                     "nats.secret_file: " + empty + " is empty",
		"/nowhere":                "nats.secret_file: open /nowhere: no such file or directory",
	} {
		_, err := Connect(t.Context(), Options{Server: configs.NATS{URL: "nats://h", SecretFile: value}, RunID: "r1"})
		if text := fmt.Sprint(err); text != "connect to the NATS server at nats://h: "+want {
			t.Errorf("error %s\nwant %s", text, want)
		}
	}
}

// BenchmarkSeal measures the cost of sealing: one message with the rows of a halo, sent and received by one process.
func BenchmarkSeal(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 512 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s, err := newSeal(configs.Inline(secret), "r1")
			if err != nil {
				b.Fatal(err)
			}
			data := make([]byte, size)
			var buf []byte
			b.SetBytes(int64(size))
			for b.Loop() {
				buf = s.close(buf[:0], "jacobi.r1.halo.1.top", "", data)
				if _, err := s.open("jacobi.r1.halo.1.top", "", buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
