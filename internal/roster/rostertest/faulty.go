package rostertest

import (
	"math/rand/v2"
	"sync"

	"github.com/nats-io/nats.go"
)

// Faulty is a connection that mistreats the messages that it publishes: each is lost, sent twice, or kept back
// until after the next one, with one probability for each of the three. The choices follow from the seed.
type Faulty struct {
	*nats.Conn

	mu   sync.Mutex
	p    float64
	rng  *rand.Rand
	kept []*nats.Msg
	lost int
}

// NewFaulty returns a connection over conn with the given seed and probability.
func NewFaulty(conn *nats.Conn, seed uint64, p float64) *Faulty {
	return &Faulty{Conn: conn, p: p, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Misbehave sets the probability from now on.
func (f *Faulty) Misbehave(p float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = p
}

// Lost returns how many messages were lost so far.
func (f *Faulty) Lost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Publish publishes the message, or does what chance says.
func (f *Faulty) Publish(subject string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.Float64() < f.p {
		f.lost++
		return nil
	}
	now := []*nats.Msg{{Subject: subject, Data: data}}
	if f.rng.Float64() < f.p {
		now = append(now, now[0])
	}
	if f.rng.Float64() < f.p {
		f.kept = append(f.kept, &nats.Msg{Subject: subject, Data: append([]byte(nil), data...)})
		return nil
	}
	now = append(now, f.kept...)
	f.kept = nil
	for _, m := range now {
		if err := f.Conn.Publish(m.Subject, m.Data); err != nil {
			return err
		}
	}
	return nil
}
