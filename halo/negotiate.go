package halo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"jacobi/internal/base/pubsub"
)

// handshake chooses the transport of one link. The lower rank tries its peers in order, and NATS last. For each it
// opens its end, sends a proposal, and repeats the proposal until an answer comes. The higher rank opens its end and
// answers. If either end fails, the lower rank goes on to the next transport. Both ends keep the reason for the choice.
type handshake struct {
	opts   *Options
	end    End
	theirs Member
}

// proposal is one step of a handshake, sent by the lower rank.
type proposal struct {
	Step      int             `json:"step"`
	End       End             `json:"end"` // of the lower rank
	Mode      Mode            `json:"mode"`
	Transport string          `json:"transport"` // empty: no transport works
	Why       string          `json:"why"`
	Offer     json.RawMessage `json:"offer,omitempty"`
}

// answer is the higher rank's answer to a proposal.
type answer struct {
	Step  int    `json:"step"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	Fatal bool   `json:"fatal,omitempty"` // no other transport will work either
}

// The lower rank waits askNeighbour for an answer, and pauseNeighbour more before it asks again: the neighbour may not
// listen yet. Both double with each attempt up to maxNeighbour, so that thousands of ranks that start on few cores do
// not keep each other from starting by asking.
const (
	askNeighbour   = 250 * time.Millisecond
	pauseNeighbour = 20 * time.Millisecond
	maxNeighbour   = 4 * time.Second
)

func (h *handshake) subject() string {
	rank, side := h.end.Rank, h.end.Side
	if h.end.Rank < h.end.Neighbour {
		rank, side = h.end.Neighbour, side.Opposite()
	}
	return h.opts.NATS.subject(h.end.Run, "link", rank, side)
}

// settle runs one part of a handshake, propose or a responder's wait.
func (h *handshake) settle(ctx context.Context, part func(context.Context) (Link, Info, error)) (Link, Info, error) {
	l, info, err := part(ctx)
	if err != nil {
		return nil, Info{}, fmt.Errorf("halo: rank %d, %s side: link with rank %d on %s: %w", h.end.Rank, h.end.Side,
			h.end.Neighbour, h.theirs.Host, err)
	}
	h.opts.NATS.Log.Debug("link open", zap.Stringer("side", h.end.Side), zap.Int("neighbour", h.end.Neighbour),
		zap.String("transport", info.Transport), zap.String("why", info.Why))
	return l, info, nil
}

// propose is the lower rank's part of a handshake.
func (h *handshake) propose(ctx context.Context) (Link, Info, error) {
	step := 0
	why := "halo.transport is nats"
	if h.opts.Mode != ModeNATS {
		why = "no direct transport"
		for _, peer := range h.opts.Peers {
			ok, reason := peer.Reachable(h.theirs)
			if !ok {
				why = reason
				continue
			}
			l, offer, err := peer.Offer(h.end)
			if err == nil {
				err = h.ask(ctx, proposal{Step: step, Transport: peer.Name(), Why: reason, Offer: offer})
				step++
			}
			if err == nil {
				return l, Info{peer.Name(), reason}, nil
			}
			if l != nil {
				err = errors.Join(err, l.Close())
			}
			var no *refusal
			if ctx.Err() != nil || errors.As(err, &no) && no.fatal {
				return nil, Info{}, err
			}
			why = fmt.Sprintf("%s failed: %v", peer.Name(), err)
		}
	}
	if h.opts.Mode == ModeP2P {
		// Without a last proposal the neighbour would wait until its timeout.
		err := fmt.Errorf("halo.transport is p2p: %s", why)
		return nil, Info{}, errors.Join(err, h.ask(ctx, proposal{Step: step, Why: why}))
	}
	l, err := NewNATS(ctx, h.end, h.opts.NATS)
	if err != nil {
		return nil, Info{}, err
	}
	if err := h.ask(ctx, proposal{Step: step, Transport: TransportNATS, Why: why}); err != nil {
		return nil, Info{}, errors.Join(err, l.Close())
	}
	return l, Info{TransportNATS, why}, nil
}

// refusal is an answer that is not OK.
type refusal struct {
	rank  int
	text  string
	fatal bool
}

func (r *refusal) Error() string { return fmt.Sprintf("rank %d: %s", r.rank, r.text) }

// ask sends p, repeatedly, until an answer comes or ctx ends.
func (h *handshake) ask(ctx context.Context, p proposal) error {
	p.End, p.Mode = h.end, h.opts.Mode
	msg, err := json.Marshal(p)
	if err != nil {
		return err
	}
	for wait, pause := askNeighbour, pauseNeighbour; ; wait, pause = min(2*wait, maxNeighbour), min(2*pause,
		maxNeighbour) {
		once, cancel := context.WithTimeout(ctx, wait)
		m, err := h.opts.NATS.Conn.RequestWithContext(once, h.subject(), msg)
		cancel()
		var a answer
		switch {
		case err == nil:
			if err := json.Unmarshal(m.Data, &a); err != nil {
				return fmt.Errorf("answer of rank %d: %w", h.end.Neighbour, err)
			}
			if a.Step != p.Step {
				return &refusal{h.end.Neighbour, fmt.Sprintf("answered step %d, want %d", a.Step, p.Step), true}
			}
			if !a.OK {
				return &refusal{h.end.Neighbour, a.Error, a.Fatal}
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case h.opts.NATS.Conn.Status() == pubsub.Closed:
			return err
		}
		// The neighbour does not listen yet, or the message was lost.
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

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
