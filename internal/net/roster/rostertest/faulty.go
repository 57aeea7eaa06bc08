package rostertest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"time"

	"jacobi/internal/base/pubsub"
)

// Faults are what a bad network does to the messages that a connection publishes. All but the last three fields are
// probabilities, 0 to 1.
type Faults struct {
	Drop      float64 // the message is lost
	Duplicate float64 // it is sent twice
	Reorder   float64 // it is sent after the next one
	Corrupt   float64 // one bit of it changes
	Delay     float64 // it is sent up to MaxDelay later
	MaxDelay  time.Duration
	// CutCount messages are lost from number CutFrom on, or all of them if CutCount < 0: the connection is cut.
	CutFrom, CutCount int
}

// Lossy returns faults that lose, double and reorder messages, each with probability p.
func Lossy(p float64) Faults { return Faults{Drop: p, Duplicate: p, Reorder: p} }

// Faulty is a connection with faults in the messages that it publishes. The same seed and the same messages give the
// same faults.
type Faulty struct {
	pubsub.Conn
	delayed sync.WaitGroup

	mu     sync.Mutex
	faults Faults
	rng    *rand.Rand
	n      int // messages so far
	lost   int
	held   []pubsub.Message
	closed bool
}

// NewFaulty returns a connection over conn with the given seed and faults.
func NewFaulty(conn pubsub.Conn, seed uint64, f Faults) *Faulty {
	return &Faulty{Conn: conn, faults: f, rng: rand.New(rand.NewPCG(seed, 0))}
}

// Misbehave sets the faults from now on.
func (c *Faulty) Misbehave(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// Lost returns the number of messages lost so far.
func (c *Faulty) Lost() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Publish publishes the message, with faults.
func (c *Faulty) Publish(subject string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, n := c.faults, c.n
	c.n++
	// Every message draws the same number of values, so that one fault does not shift the others.
	hit := func(probability float64) bool { return c.rng.Float64() < probability }
	drop, twice, later, flip, wait := hit(f.Drop), hit(f.Duplicate), hit(f.Reorder), hit(f.Corrupt), hit(f.Delay)
	bit, share := c.rng.IntN(max(1, 8*len(data))), c.rng.Float64()
	if drop || c.closed || n >= f.CutFrom && (f.CutCount < 0 || n < f.CutFrom+f.CutCount) {
		c.lost++
		return nil
	}
	m := pubsub.Message{Subject: subject, Data: bytes.Clone(data)}
	if flip && len(data) > 0 {
		m.Data[bit/8] ^= 1 << (bit % 8)
	}
	if later {
		c.held = append(c.held, m)
		return nil
	}
	out := append([]pubsub.Message{m}, c.held...)
	c.held = nil
	if twice {
		out = append(out, m)
	}
	if wait {
		c.delayed.Add(1)
		time.AfterFunc(time.Duration(share*float64(f.MaxDelay)), func() {
			defer c.delayed.Done()
			_ = c.send(out) // an error here is one more lost message
		})
		return nil
	}
	return c.send(out)
}

func (c *Faulty) send(out []pubsub.Message) error {
	for _, m := range out {
		if err := c.Conn.Publish(m.Subject, m.Data); err != nil {
			return err
		}
	}
	return nil
}

// Settle waits until no delayed message is left. Messages published after it are lost: a link that is closed may still
// answer a request that came before.
func (c *Faulty) Settle() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.delayed.Wait()
}
