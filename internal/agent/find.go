package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/version"
	"jacobi/internal/wire"
)

const (
	askAgain = 500 * time.Millisecond
	// settle is how long a launcher still listens once there are enough slots, so that placement does not depend on who
	// answers first.
	settle = 200 * time.Millisecond
)

// Find asks the agents at the server, again and again, until those that answer have slots for ranks or wait is over. It returns
// all offers of this version, by host, and says in an error how many slots there are and who answered. conn is of the run Group.
func Find(ctx context.Context, conn *wire.Conn, ranks int, wait time.Duration) ([]Offer, error) {
	s := search{offers: map[string]Offer{}}
	if err := s.run(ctx, conn, ranks, wait); err != nil {
		return nil, fmt.Errorf("ask the agents at %s: %w", conn.Server(), err)
	}
	offers, foreign := s.sorted()
	if free := freeSlots(offers); free < ranks {
		return nil, fmt.Errorf("%d ranks need as many slots, and after %v there are %d: %s", ranks, wait, free, s.answers(conn, offers, foreign))
	}
	return offers, nil
}

// List returns the offers of all agents that answer within wait, by host, whatever their version.
func List(ctx context.Context, conn *wire.Conn, wait time.Duration) ([]Offer, error) {
	s := search{offers: map[string]Offer{}}
	if err := s.run(ctx, conn, 0, wait); err != nil {
		return nil, fmt.Errorf("ask the agents at %s: %w", conn.Server(), err)
	}
	offers, foreign := s.sorted()
	return append(offers, foreign...), nil
}

type search struct{ offers map[string]Offer }

// run collects offers until they have enough slots and no more come; with ranks 0 until wait is over.
func (s *search) run(ctx context.Context, conn *wire.Conn, ranks int, wait time.Duration) error {
	answers := make(chan Offer, 256)
	inbox := conn.NewInbox()
	sub, err := conn.Subscribe(inbox, func(m *nats.Msg) {
		var o Offer
		if json.Unmarshal(m.Data, &o) != nil || o.Slots < 1 || o.Free < 0 || o.Free > o.Slots {
			return
		}
		select {
		case answers <- o:
		default: // asked again
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails on a closed connection alone
	late := time.NewTimer(wait)
	defer late.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for ask := true; ; {
		if ask {
			if err := conn.PublishRequest(offerSubject, inbox, nil); err != nil {
				return err
			}
			ask = false
		}
		select {
		case o := <-answers:
			_, known := s.offers[o.ID]
			s.offers[o.ID] = o
			if offers, _ := s.sorted(); ranks > 0 && !known && freeSlots(offers) >= ranks {
				late.Reset(settle)
			}
		case <-again.C:
			ask = true
		case <-late.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sorted returns the offers by host, those of another version apart.
func (s *search) sorted() (offers, foreign []Offer) {
	for _, o := range s.offers {
		if o.Version == version.String() {
			offers = append(offers, o)
		} else {
			foreign = append(foreign, o)
		}
	}
	order := func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	}
	slices.SortFunc(offers, order)
	slices.SortFunc(foreign, order)
	return offers, foreign
}

func freeSlots(offers []Offer) int {
	free := 0
	for _, o := range offers {
		free += o.Free
	}
	return free
}

// answers says who was asked and who answered.
func (s *search) answers(conn *wire.Conn, offers, foreign []Offer) string {
	var who []string
	for _, o := range offers {
		who = append(who, o.String())
	}
	for _, o := range foreign {
		who = append(who, fmt.Sprintf("%s is left out: its version is %s, the launcher's %s", o.Host, o.Version, version.String()))
	}
	if who == nil {
		who = []string{"none answered"}
	}
	text := fmt.Sprintf("all agents at %s were asked; %s", conn.Server(), strings.Join(who, ", "))
	if n := conn.Refused(); n > 0 {
		text += fmt.Sprintf("; %d answers were not sealed with the secret of nats.secret_file", n)
	}
	return text
}
