package halo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

// handshake chooses the transport of one link. The lower rank tries its peers in order, and NATS last. For each it
// opens its end and sends a proposal; the higher rank opens its end and answers. If either end fails, the lower rank
// goes on to the next transport. Both ends keep the reason for the choice.
type handshake struct {
	opts   *Options
	end    End
	theirs Member
}

// proposal is one step of a handshake, sent by the lower rank.
type proposal struct {
	End       End             `json:"end"` // of the lower rank
	Mode      Mode            `json:"mode"`
	Transport string          `json:"transport"` // empty: no transport works
	Why       string          `json:"why"`
	Offer     json.RawMessage `json:"offer,omitempty"`
}

// answer is the higher rank's answer to a proposal.
type answer struct {
	Error string `json:"error,omitempty"` // empty: the link is open
	Fatal bool   `json:"fatal,omitempty"` // no other transport will work either
}

// run does one part of a handshake, propose or respond.
func (h *handshake) run(ctx context.Context, part func(context.Context) (Link, Info, error)) (Link, Info, error) {
	l, info, err := part(ctx)
	if err != nil {
		return nil, Info{}, fmt.Errorf("halo: rank %d, %s side: link with rank %d on %s: %w", h.end.Rank, h.end.Side,
			h.end.Neighbour, h.theirs.Host, err)
	}
	h.opts.NATS.Log.Debug("link open", zap.Stringer("side", h.end.Side), zap.Int("neighbour", h.end.Neighbour),
		zap.String("transport", info.Transport), zap.String("why", info.Why))
	return l, info, nil
}

// tag returns the tag of the messages about the link, the same at both ends.
func (h *handshake) tag() string {
	if h.end.Rank > h.end.Neighbour {
		return "link/" + h.end.Side.Opposite().String()
	}
	return "link/" + h.end.Side.String()
}

// tell sends a message to the neighbour.
func (h *handshake) tell(ctx context.Context, message any) error {
	data, err := json.Marshal(message)
	if err == nil {
		err = h.opts.Comm.Send(ctx, h.end.Neighbour, h.tag(), data)
	}
	return causeOf(ctx, err)
}

// hear waits for the neighbour's next message.
func (h *handshake) hear(ctx context.Context, message any) error {
	data, err := h.opts.Comm.Recv(ctx, h.end.Neighbour, h.tag())
	if err == nil {
		err = json.Unmarshal(data, message)
	}
	return causeOf(ctx, err)
}

// causeOf returns why ctx ended, if that is what err reports.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// propose is the lower rank's part of a handshake.
func (h *handshake) propose(ctx context.Context) (Link, Info, error) {
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
				if err = h.ask(ctx, proposal{Transport: peer.Name(), Why: reason, Offer: offer}); err == nil {
					return l, Info{peer.Name(), reason}, nil
				}
				no, refused := errors.AsType[*refusal](err)
				err = errors.Join(err, l.Close())
				if !refused || no.fatal {
					return nil, Info{}, err
				}
			}
			why = fmt.Sprintf("%s failed: %v", peer.Name(), err)
		}
	}
	if h.opts.Mode == ModeP2P {
		// Without a last proposal the neighbour would wait until its timeout.
		err := fmt.Errorf("halo.transport is p2p: %s", why)
		return nil, Info{}, errors.Join(err, h.ask(ctx, proposal{Why: why}))
	}
	l, err := NewNATS(ctx, h.end, h.opts.NATS)
	if err != nil {
		return nil, Info{}, err
	}
	if err := h.ask(ctx, proposal{Transport: TransportNATS, Why: why}); err != nil {
		return nil, Info{}, errors.Join(err, l.Close())
	}
	return l, Info{TransportNATS, why}, nil
}

// refusal is an answer with an error.
type refusal struct {
	rank  int
	text  string
	fatal bool
}

func (r *refusal) Error() string { return fmt.Sprintf("rank %d: %s", r.rank, r.text) }

// ask sends p and waits for the answer.
func (h *handshake) ask(ctx context.Context, p proposal) error {
	p.End, p.Mode = h.end, h.opts.Mode
	if err := h.tell(ctx, p); err != nil {
		return err
	}
	var a answer
	if err := h.hear(ctx, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return &refusal{h.end.Neighbour, a.Error, a.Fatal}
	}
	return nil
}

// respond is the higher rank's part of a handshake: it answers proposals until one of them settles the link.
func (h *handshake) respond(ctx context.Context) (Link, Info, error) {
	for {
		var p proposal
		if err := h.hear(ctx, &p); err != nil {
			return nil, Info{}, fmt.Errorf("waiting for its proposal: %w", err)
		}
		link, a, err := h.try(ctx, &p)
		err = errors.Join(err, h.tell(ctx, a))
		switch {
		case err != nil && link != nil:
			return nil, Info{}, errors.Join(err, link.Close())
		case err != nil || link != nil:
			return link, Info{p.Transport, p.Why}, err
		}
	}
}

// try opens the link that p proposes, and returns the answer. The error ends the handshake.
func (h *handshake) try(ctx context.Context, p *proposal) (Link, answer, error) {
	if err := h.compatible(p); err != nil {
		err = fmt.Errorf("the ranks disagree: %w", err)
		return nil, answer{Error: err.Error(), Fatal: true}, err
	}
	if p.Transport == "" {
		return nil, answer{}, fmt.Errorf("halo.transport is p2p: %s", p.Why)
	}
	link, err := h.accept(ctx, p)
	if err != nil {
		return nil, answer{Error: err.Error()}, nil
	}
	return link, answer{}, nil
}

func (h *handshake) compatible(p *proposal) error {
	if err := mismatch("halo.transport", p.Mode, h.opts.Mode); err != nil {
		return err
	}
	return sameLink(h.end, p.End)
}

func (h *handshake) accept(ctx context.Context, p *proposal) (Link, error) {
	if p.Transport == TransportNATS {
		return NewNATS(ctx, h.end, h.opts.NATS)
	}
	for _, peer := range h.opts.Peers {
		if peer.Name() == p.Transport {
			return peer.Accept(h.end, p.Offer)
		}
	}
	return nil, fmt.Errorf("no transport %q here", p.Transport)
}
