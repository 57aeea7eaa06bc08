package halo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
)

// responder is the higher rank's part of a handshake. Its subscription lives as long as the links, so that a proposal
// whose answer was lost gets the same answer again.
type responder struct {
	*handshake
	ctx  context.Context // of Connect; bounds the opening of a link over NATS
	done chan struct{}   // closed once settled

	mu      sync.Mutex
	settled bool
	last    *answer
	link    Link
	info    Info
	err     error
}

func newResponder(ctx context.Context, h *handshake) *responder {
	return &responder{handshake: h, ctx: ctx, done: make(chan struct{})}
}

func (r *responder) listen() (pubsub.Subscription, error) {
	sub, err := r.opts.NATS.Conn.Subscribe(r.subject(), r.onProposal)
	if err != nil {
		return nil, fmt.Errorf("halo: rank %d: subscribe to %s: %w", r.end.Rank, r.subject(), err)
	}
	return sub, nil
}

// wait waits until the proposals have settled the link, or ctx ends.
func (r *responder) wait(ctx context.Context) (Link, Info, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		r.settled = true
		r.err = fmt.Errorf("waiting for its proposal: %w", context.Cause(ctx))
	}
	return r.link, r.info, r.err
}

func (r *responder) onProposal(m pubsub.Message) {
	var p proposal
	if err := json.Unmarshal(m.Data, &p); err != nil {
		r.opts.NATS.Log.Warn("refused a proposal", zap.Error(err))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.last != nil && p.Step == r.last.Step: // a repetition: the answer was lost or late
	case r.settled || r.last != nil && p.Step < r.last.Step:
		return
	default:
		r.try(&p)
	}
	msg, err := json.Marshal(r.last)
	if err == nil {
		err = r.opts.NATS.Conn.Publish(m.Reply, msg)
	}
	if err != nil { // the lower rank asks again
		r.opts.NATS.Log.Debug("answer lost", zap.Error(err))
	}
}

// try opens the link that p proposes and sets r.last, the answer.
func (r *responder) try(p *proposal) {
	r.last = &answer{Step: p.Step}
	if err := r.compatible(p); err != nil {
		r.last.Error, r.last.Fatal = fmt.Sprintf("the ranks disagree: %v", err), true
		r.finish(fmt.Errorf("the ranks disagree: %w", err))
		return
	}
	if p.Transport == "" {
		r.last.OK = true
		r.finish(fmt.Errorf("halo.transport is p2p: %s", p.Why))
		return
	}
	link, err := r.accept(p)
	if err != nil {
		r.last.Error = err.Error()
		return
	}
	r.last.OK = true
	r.link, r.info = link, Info{p.Transport, p.Why}
	r.finish(nil)
}

func (r *responder) compatible(p *proposal) error {
	if err := mismatch("halo.transport", p.Mode, r.opts.Mode); err != nil {
		return err
	}
	return sameLink(r.end, p.End)
}

func (r *responder) accept(p *proposal) (Link, error) {
	if p.Transport == TransportNATS {
		return NewNATS(r.ctx, r.end, r.opts.NATS)
	}
	for _, peer := range r.opts.Peers {
		if peer.Name() == p.Transport {
			return peer.Accept(r.end, p.Offer)
		}
	}
	return nil, fmt.Errorf("no transport %q here", p.Transport)
}

func (r *responder) finish(err error) {
	r.settled, r.err = true, err
	close(r.done)
}
