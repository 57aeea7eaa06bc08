package halo_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/solver"
)

// brokenPeer is a Peer that fails on one end or the other.
type brokenPeer struct {
	SharedMemory
	offer, accept error
}

func (brokenPeer) Name() string { return "broken memory" }

func (p brokenPeer) Offer(end End) (Link, json.RawMessage, error) {
	if p.offer != nil {
		return nil, nil, p.offer
	}
	return p.SharedMemory.Offer(end)
}

func (p brokenPeer) Accept(end End, offer json.RawMessage) (Link, error) {
	if p.accept != nil {
		return nil, p.accept
	}
	return p.SharedMemory.Accept(end, offer)
}

func TestConnectFallsBack(t *testing.T) {
	s := serve(t, server.Options{})
	shared := SharedMemory{SharedOptions{Timeout: long}}
	for name, broken := range map[string]brokenPeer{
		"offer":  {shared, errors.New("no memory"), nil},
		"accept": {shared, nil, errors.New("no map")},
	} {
		reason := "no m"
		t.Run(name+", to the next peer", func(t *testing.T) {
			w := newWorld(t, s, ModeP2P, 2, true)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken, shared}
			}
			links := w.connected(t)
			if got := links[1].Info[solver.Top].Transport; got != TransportShared {
				t.Errorf("transport %s, want %s", got, TransportShared)
			}
			w.exchange(t, links)
		})
		t.Run(name+", to NATS", func(t *testing.T) {
			w := newWorld(t, s, ModeAuto, 3, false)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken}
			}
			links := w.connected(t)
			for _, info := range []Info{links[0].Info[solver.Bottom], links[1].Info[solver.Top]} {
				if info.Transport != TransportNATS || !strings.Contains(info.Why, "broken memory failed: ") ||
					!strings.Contains(info.Why, reason) {
					t.Errorf("got %+v, want nats because %s", info, reason)
				}
			}
			w.exchange(t, links)
		})
		t.Run(name+", to an error", func(t *testing.T) {
			w := newWorld(t, s, ModeP2P, 2, false)
			for r := range w.opts {
				w.opts[r].Peers = []Peer{broken}
			}
			_, errs := w.connect(t)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "halo.transport is p2p: broken memory failed: ") ||
					!strings.Contains(err.Error(), reason) {
					t.Errorf("rank %d: got %v, want why p2p does not work", r, err)
				}
			}
		})
	}
}

func TestConnectP2POnTwoNodes(t *testing.T) {
	w := newWorld(t, serve(t, server.Options{}), ModeP2P, 2, true)
	w.separate(0, 1, "two nodes")
	_, errs := w.connect(t)
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "halo.transport is p2p: two nodes") {
			t.Errorf("rank %d: got %v", r, err)
		}
	}
}
