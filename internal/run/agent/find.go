package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/version"
	"jacobi/internal/net/wire"
)

const (
	askAgain = 500 * time.Millisecond
	// settle is how long a launcher goes on collecting offers once there are enough slots, so that placement does not
	// depend on who answers first. It is also how long it collects them before it reports that there are too few.
	settle = 200 * time.Millisecond
	// missed is how many questions in a row an agent may leave unanswered before its offer is dropped.
	missed = 4
)

// Find asks the agents at the server repeatedly until their free slots suffice for ranks or wait is over. While there
// are too few, it calls say with the offers at first and after every change. It returns all offers of this version,
// sorted by host. If there are too few slots, the error says how many there are and who answered. The run id of conn is
// Group.
func Find(ctx context.Context, conn *wire.Conn, ranks int, wait time.Duration, say func(string)) ([]Offer, error) {
	s := newSearch(conn)
	if err := s.run(ctx, ranks, wait, say); err != nil {
		return nil, fmt.Errorf("ask the agents at %s: %w", conn.Server(), err)
	}
	offers, _ := s.sorted()
	n := freeSlots(offers)
	if n >= ranks {
		return offers, nil
	}
	foreign := ""
	if r := conn.Refused(); r > 0 {
		foreign = fmt.Sprintf("; %d answers were not sealed with the secret of nats.secret_file", r)
	}
	return nil, fmt.Errorf("%d ranks need %[1]d slots, and after %v there are %d, %d too few: "+
		"all agents at %s were asked; %s%s", ranks, wait, n, ranks-n, conn.Server(), s.answers(), foreign)
}

// List returns the offers of all agents that answer within wait, of any version: first those of this version, each part
// sorted by host.
func List(ctx context.Context, conn *wire.Conn, wait time.Duration) ([]Offer, error) {
	s := newSearch(conn)
	if err := s.run(ctx, 0, wait, nil); err != nil {
		return nil, fmt.Errorf("ask the agents at %s: %w", conn.Server(), err)
	}
	offers, foreign := s.sorted()
	return append(offers, foreign...), nil
}

// search collects the offers of agents.
type search struct {
	conn   *wire.Conn
	asked  int                 // questions so far
	offers map[string]answered // by the agents' ids
}

// answered is the last offer of an agent.
type answered struct {
	Offer
	asked int // number of questions asked when it came
}

func newSearch(conn *wire.Conn) *search { return &search{conn: conn, offers: map[string]answered{}} }

// run collects offers until they have had enough slots for settle, or wait is over. With ranks 0 it always collects for
// wait.
func (s *search) run(ctx context.Context, ranks int, wait time.Duration, say func(string)) error {
	answers := make(chan Offer, 256)
	inbox := s.conn.NewInbox()
	sub, err := s.conn.Subscribe(inbox, func(m pubsub.Message) {
		o, ok := readOffer(m.Data)
		if !ok {
			return
		}
		select {
		case answers <- o:
		default: // the next question brings the offer again
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	late := time.NewTimer(wait)
	defer late.Stop()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	var settled <-chan time.Time // fires settle after there were enough slots; nil while there are too few
	listened := time.NewTimer(settle)
	defer listened.Stop()
	mayTell, told := false, ""
	for ask := true; ; {
		if ask {
			if err := s.ask(inbox); err != nil {
				return err
			}
			ask = false
		}
		select {
		case o := <-answers:
			s.offers[o.ID] = answered{o, s.asked}
		case <-again.C:
			ask = true
			s.forget()
		case <-listened.C:
			mayTell = ranks > 0
		case <-settled:
			return nil
		case <-late.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		offers, _ := s.sorted()
		enough := ranks > 0 && freeSlots(offers) >= ranks
		switch {
		case !enough:
			settled = nil
		case settled == nil:
			settled = time.After(settle)
		}
		if text := s.answers(); mayTell && !enough && text != told {
			told = text
			say(text)
		}
	}
}

func (s *search) ask(inbox string) error {
	s.asked++
	return s.conn.PublishRequest(offerSubject, inbox, nil)
}

// forget drops the offers of agents that have not answered the last questions.
func (s *search) forget() {
	for id, o := range s.offers {
		if s.asked-o.asked >= missed {
			delete(s.offers, id)
		}
	}
}

// sorted returns the offers by host, those of other versions separately.
func (s *search) sorted() (offers, foreign []Offer) {
	for _, o := range s.offers {
		if o.Version == version.String() {
			offers = append(offers, o.Offer)
		} else {
			foreign = append(foreign, o.Offer)
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

// answers describes the offers.
func (s *search) answers() string {
	offers, foreign := s.sorted()
	who := states(offers)
	for _, o := range foreign {
		who = append(who, fmt.Sprintf("%s is left out: its version is %s, the launcher's %s", o.Host, o.Version,
			version.String()))
	}
	if len(who) == 0 {
		who = []string{"none answered"}
	}
	return strings.Join(who, ", ")
}
