package agent

import (
	"context"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/launch"
)

// Hosts returns a host for each offer whose name, as Names gives it, is used.
func Hosts(conn *wire.Conn, offers []Offer, used func(name string) bool) (map[string]launch.Host, error) {
	hosts := map[string]launch.Host{}
	for i, name := range Names(offers) {
		if !used(name) {
			continue
		}
		w, err := dial(conn, offers[i])
		if err != nil {
			for _, h := range hosts {
				_ = h.Close() // nothing was started
			}
			return nil, fmt.Errorf("reach the agent on %s: %w", name, err)
		}
		hosts[name] = launch.NewRemote(name, w)
	}
	return hosts, nil
}

// agentWire is a launcher's end of the wire to an agent.
type agentWire struct {
	stream *wire.Stream
	sub    pubsub.Subscription
	news   chan launch.News
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

func dial(conn *wire.Conn, o Offer) (*agentWire, error) {
	own, err := newKey()
	if err != nil {
		return nil, err
	}
	id := publicID(own)
	sealed, err := sealSession(conn, own, o.ID, o.ID, id)
	if err != nil {
		return nil, err
	}
	w := &agentWire{stream: wire.NewStream(wire.StreamOptions{Conn: sealed, Subject: toAgent(o.ID, id)}),
		news: make(chan launch.News)}
	w.sub, err = sealed.Subscribe(toLauncher(o.ID, id), func(m pubsub.Message) {
		if f, err := wire.ParseFrame(m.Data); err == nil {
			w.stream.Receive(f)
		}
	})
	if err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	go w.read()
	return w, nil
}

// read passes on the news of the agent.
func (w *agentWire) read() {
	defer close(w.news)
	each(w.ctx, w.stream, func(n launch.News) bool {
		select {
		case w.news <- n:
			return true
		case <-w.ctx.Done():
			return false
		}
	})
}

func (w *agentWire) Send(o launch.Order) error { return send(w.ctx, w.stream, o) }

func (w *agentWire) News() <-chan launch.News { return w.news }

func (w *agentWire) Reason() string {
	if why := w.stream.Reason(); why != "" {
		return "its agent says: " + why
	}
	return ""
}

// Close returns once the agent has killed the ranks, or after lastWords if it does not answer.
func (w *agentWire) Close() error {
	w.stream.Close("")
	w.cancel()
	if w.stream.Used() {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		_ = w.stream.AwaitEnd(ctx) // an agent that does not answer ends its ranks when it hears nothing
	}
	return w.sub.Unsubscribe()
}

// A session is one launcher's use of one agent. Each end has an X25519 key pair: the launcher makes one for each
// session, the agent makes one at its start. The public keys are parts of the subjects. So only the agent that made the
// offer can read the secrets of a run, even if launcher and agent share no secret.

func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

func publicID(key *ecdh.PrivateKey) string { return hex.EncodeToString(key.PublicKey().Bytes()) }

// toAgent and toLauncher are the subjects of a session, whose messages are JSON. toAgent with "*" for the launcher
// matches all sessions of an agent.
func toAgent(agent, launcher string) string { return prefix + "." + agent + "." + launcher + ".orders" }
func toLauncher(agent, launcher string) string {
	return prefix + "." + agent + "." + launcher + ".news"
}

// lastWords bounds the waits for the last acknowledgements and for the other side's goodbye.
const lastWords = 5 * time.Second

// send sends v. It waits for room in the window, but not for the other side.
func send(ctx context.Context, s *wire.Stream, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Send(ctx, data)
}

// each calls f with what the other side sends, until f returns false, something else than a T comes, or the stream or
// ctx ends.
func each[T any](ctx context.Context, s *wire.Stream, f func(T) bool) {
	for {
		data, err := s.Recv(ctx)
		if err != nil {
			return
		}
		var v T
		if json.Unmarshal(data, &v) != nil || !f(v) {
			return
		}
	}
}

// sealSession returns conn sealed with the key of the session between own and peer, the public key of the other end. A
// secret that agents and launchers share enters the key, so that a stranger can pose as neither.
func sealSession(conn *wire.Conn, own *ecdh.PrivateKey, peer, agent, launcher string) (*wire.Conn, error) {
	raw, err := hex.DecodeString(peer)
	var public *ecdh.PublicKey
	if err == nil {
		public, err = ecdh.X25519().NewPublicKey(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	secret, err := own.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("agree on a key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, append(secret, conn.Shared()...), nil, "jacobi node 1 "+agent+" "+launcher, 32)
	if err != nil {
		return nil, err
	}
	return conn.Between(key)
}
