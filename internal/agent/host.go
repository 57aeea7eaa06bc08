package agent

import (
	"encoding/json"
	"fmt"

	"jacobi/internal/launch"
	"jacobi/internal/pubsub"
	"jacobi/internal/wire"
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
	stream *stream
	sub    pubsub.Subscription
	news   chan launch.News
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
	w := &agentWire{stream: newStream(sender(sealed, toAgent(o.ID, id)), sealed.MaxPayload(), resendAfter),
		news: make(chan launch.News)}
	w.sub, err = sealed.Subscribe(toLauncher(o.ID, id), func(m pubsub.Message) {
		var p packet
		if json.Unmarshal(m.Data, &p) == nil {
			w.stream.receive(p)
		}
	})
	if err != nil {
		w.stream.leave("", false)
		return nil, err
	}
	go w.read()
	return w, nil
}

// read passes on the news of the agent.
func (w *agentWire) read() {
	defer close(w.news)
	for data := range w.stream.in {
		var n launch.News
		if json.Unmarshal(data, &n) != nil {
			return // no agent sends this
		}
		select {
		case w.news <- n:
		case <-w.stream.closed:
			return
		}
	}
}

func (w *agentWire) Send(o launch.Order) error { return w.stream.send(o) }

func (w *agentWire) News() <-chan launch.News { return w.news }

func (w *agentWire) Reason() string {
	if why := w.stream.reason(); why != "" {
		return "its agent says: " + why
	}
	return ""
}

// Close returns once the agent has killed the ranks, or after lastWords if it does not answer.
func (w *agentWire) Close() error {
	w.stream.leave("", w.stream.used())
	return w.sub.Unsubscribe()
}
