package rostertest

import (
	"math/rand/v2"
	"sync"

	"jacobi/internal/base/pubsub"
)

// Faulty is a connection with faults in the messages that it publishes. Each message may be lost, sent twice, or held
// back until after the next one; each of these has the same probability. The choices follow from the seed.
type Faulty struct {
	pubsub.Conn

	mu   sync.Mutex
	p    float64
	rng  *rand.Rand
	kept []pubsub.Message
	lost int
}

// NewFaulty returns a connection over conn with the given seed and probability.
func NewFaulty(conn pubsub.Conn, seed uint64, p float64) *Faulty {
	return &Faulty{Conn: conn, p: p, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Misbehave sets the probability of each fault from now on.
func (f *Faulty) Misbehave(p float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.p = p
}

// Lost returns the number of messages lost so far.
func (f *Faulty) Lost() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Publish publishes the message, with faults.
func (f *Faulty) Publish(subject string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.Float64() < f.p {
		f.lost++
		return nil
	}
	out := []pubsub.Message{{Subject: subject, Data: data}}
	if f.rng.Float64() < f.p {
		out = append(out, out[0])
	}
	if f.rng.Float64() < f.p {
		f.kept = append(f.kept, pubsub.Message{Subject: subject, Data: append([]byte(nil), data...)})
		return nil
	}
	out = append(out, f.kept...)
	f.kept = nil
	for _, m := range out {
		if err := f.Conn.Publish(m.Subject, m.Data); err != nil {
			return err
		}
	}
	return nil
}
