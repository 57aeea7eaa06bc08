package halo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
