// Package agent starts ranks on nodes through agents that wait at a NATS server. It has the agent, the search of a
// launcher for agents, and the stream between the two. For the nats command an agent is a service like any other.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/user"
	"slices"
	"strings"
	"time"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/base/show"
	"jacobi/internal/base/version"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/launch"
)

const (
	// ServiceName is the name of agents among the services of a NATS server.
	ServiceName = "jacobi-node"
	// serviceVersion is the version of the messages between agents and launchers.
	serviceVersion = "1.0.0"

	// Group is the run id of connections between agents and launchers. Any secret that they share is bound to it.
	Group        = "nodes"
	prefix       = "jacobi." + Group
	offerSubject = prefix + ".offer"
)

// Offer is an agent's answer to a launcher.
type Offer struct {
	ID      string `json:"id"` // public key of the agent, made at its start, in hexadecimal digits
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"` // version of the agent's program
	Slots   int    `json:"slots"`
	Free    int    `json:"free"`
	What    string `json:"what"` // what the slots are: "2 GPUs", "8 cores"
}

// readOffer decodes an offer. Its sender is not trusted: the texts are made safe and short for a terminal.
func readOffer(data []byte) (o Offer, ok bool) {
	if json.Unmarshal(data, &o) != nil || o.Slots < 1 || o.Slots > launch.MaxSlots || o.Free < 0 || o.Free > o.Slots {
		return o, false
	}
	for _, text := range []*string{&o.ID, &o.Host, &o.Version, &o.What} {
		*text = show.Text(*text)
	}
	return o, true
}

// shortID is the least number of digits that a name shows of an agent's id.
const shortID = 8

// Names gives each offer a unique name: its host and, if several agents have that host name, the shortest part of its
// id that tells them apart. Process ids would not do: in containers each agent is process 1.
func Names(offers []Offer) []string {
	list := make([]string, len(offers))
	for i, o := range offers {
		list[i] = o.Host
		longest := -1 // digits that the id shares with that of another agent with this host name; -1: there is none
		for j, other := range offers {
			if j != i && other.Host == o.Host {
				longest = max(longest, shared(o.ID, other.ID))
			}
		}
		if longest >= 0 {
			list[i] += "/" + o.ID[:min(len(o.ID), max(shortID, longest+1))]
		}
	}
	return list
}

// shared returns the length of the common prefix of a and b.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Slots returns the free slots of offers, for placement.
func Slots(offers []Offer) []launch.Slots {
	slots := make([]launch.Slots, len(offers))
	for i, name := range Names(offers) {
		slots[i] = launch.Slots{Host: name, Slots: offers[i].Free}
	}
	return slots
}

// prepare takes slots for the ranks of spec and adapts spec to this node: the agent's own program and its own access to
// the server.
func (a *Agent) prepare(ctx context.Context, spec *launch.Spec) (done func(), err error) {
	if len(spec.Ranks) == 0 {
		return nil, errors.New("no ranks are to be started")
	}
	env, err := environ(spec.Env, a.Server)
	if err != nil {
		return nil, err
	}
	spec.Path, spec.Dir, spec.Env = a.Path, ".", env
	if a.Prepare != nil {
		if done, err = a.Prepare(ctx, spec); err != nil {
			return nil, err
		}
	}
	if err := a.take(spec.Ranks[0].RunID, len(spec.Ranks)); err != nil {
		if done != nil {
			done()
		}
		return nil, err
	}
	return done, nil
}

func (a *Agent) take(run string, ranks int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ranks > a.free {
		var others []string
		for _, r := range slices.Sorted(maps.Keys(a.by)) {
			others = append(others, fmt.Sprintf("run %s has %d", r, a.by[r]))
		}
		if others == nil {
			others = []string{"none is taken"}
		}
		return fmt.Errorf("they need %d slots, and %d of %d are free: %s", ranks, a.free, a.Slots,
			strings.Join(others, ", "))
	}
	a.free -= ranks
	a.by[run] += ranks
	return nil
}

func (a *Agent) release(run string, ranks int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += ranks
	if a.by[run] -= ranks; a.by[run] == 0 {
		delete(a.by, run)
	}
}

// openTo returns a warning that says who may use an agent at the server of conn. It returns "" if only processes of
// this machine, or holders of a shared secret, may.
func openTo(conn *wire.Conn) string {
	host, _, err := net.SplitHostPort(conn.Raw().ConnectedAddr())
	if ip := net.ParseIP(host); conn.Sealed() || err == nil && ip != nil && ip.IsLoopback() {
		return ""
	}
	as := "the user of this agent"
	if u, err := user.Current(); err == nil {
		as = "user " + u.Username
	}
	return fmt.Sprintf("whoever may publish on %s.> at %s can start ranks here, which read and write files as %s; "+
		"nats.secret_file limits that to those who have the secret", prefix, conn.Server(), as)
}

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
	s := search{conn: conn, offers: map[string]answered{}}
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
	s := search{conn: conn, offers: map[string]answered{}}
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
			s.asked++
			if err := s.conn.PublishRequest(offerSubject, inbox, nil); err != nil {
				return err
			}
			ask = false
		}
		select {
		case o := <-answers:
			s.offers[o.ID] = answered{o, s.asked}
		case <-again.C:
			ask = true
			maps.DeleteFunc(s.offers, func(_ string, o answered) bool { return s.asked-o.asked >= missed })
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
	who := Names(offers)
	for i, o := range offers {
		who[i] += fmt.Sprintf(" has %d of %d slots free", o.Free, o.Slots)
	}
	for _, o := range foreign {
		who = append(who, fmt.Sprintf("%s is left out: its version is %s, the launcher's %s", o.Host, o.Version,
			version.String()))
	}
	if len(who) == 0 {
		who = []string{"none answered"}
	}
	return strings.Join(who, ", ")
}
