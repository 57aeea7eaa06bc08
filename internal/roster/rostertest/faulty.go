package rostertest

import (
	"math/rand/v2"
	"sync"

	"github.com/nats-io/nats.go"
)

// Faulty is a connection that mistreats the messages that it publishes: each is lost with probability Drop,
// sent twice with probability Double, or kept back until after the next one with probability Swap. The choices
// follow from the seed.
type Faulty struct {
	*nats.Conn
	Drop, Double, Swap float64

	mu   sync.Mutex
	rng  *rand.Rand
	kept []*nats.Msg
	lost int
}

// NewFaulty returns a connection over conn with the given seed and every fault at probability p.
func NewFaulty(conn *nats.Conn, seed uint64, p float64) *Faulty {
	return &Faulty{Conn: conn, Drop: p, Double: p, Swap: p, rng: rand.New(rand.NewPCG(seed, 0))}
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
	if f.rng.Float64() < f.Drop {
		f.lost++
		return nil
	}
	now := []*nats.Msg{{Subject: subject, Data: data}}
	if f.rng.Float64() < f.Double {
		now = append(now, now[0])
	}
	if f.rng.Float64() < f.Swap {
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
