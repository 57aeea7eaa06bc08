package agent

import (
	"context"
	"fmt"

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
	w := &agentWire{stream: openStream(sealed, toAgent(o.ID, id)), news: make(chan launch.News)}
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
