package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// lossy carries packets to a stream. It loses, duplicates and reorders them at random, from a seed.
type lossy struct {
	mu   sync.Mutex
	rng  *rand.Rand
	kept []byte
	to   func() *stream
	lost int
	calm bool // every packet arrives once, in order
}

func (l *lossy) calmDown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm = true
}

func (l *lossy) post(b []byte) {
	l.mu.Lock()
	var now [][]byte
	switch n := l.rng.IntN(10); {
	case l.calm:
		now = [][]byte{b}
	case n < 3:
		l.lost++
	case n < 5:
		now = [][]byte{b, b}
	case n < 7 && l.kept == nil:
		l.kept = b
	default:
		now = [][]byte{b}
		if l.kept != nil {
			now = append(now, l.kept)
			l.kept = nil
		}
	}
	l.mu.Unlock()
	for _, b := range now {
		var p packet
		if err := json.Unmarshal(b, &p); err != nil {
			panic(err)
		}
		go l.to().receive(p) // not in this goroutine, which holds the sender's lock
	}
}

func TestStreamDeliversOnceAndInOrder(t *testing.T) {
	const messages = 300
	for seed := range uint64(3) {
		var a, b *stream
		paths := [2]*lossy{{rng: rand.New(rand.NewPCG(seed, 1))}, {rng: rand.New(rand.NewPCG(seed, 2))}}
		var ready sync.WaitGroup
		ready.Add(1)
		paths[0].to = func() *stream { ready.Wait(); return b }
		paths[1].to = func() *stream { ready.Wait(); return a }
		a, b = newStream(paths[0].post, 1000, time.Millisecond), newStream(paths[1].post, 1000, time.Millisecond)
		ready.Done()
		var wg sync.WaitGroup
		for _, ends := range [][2]*stream{{a, b}, {b, a}} {
			wg.Go(func() {
				for i := range messages {
					if err := ends[0].send(i); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for i := range messages {
					if got := string(<-ends[1].in); got != fmt.Sprint(i) {
						t.Errorf("seed %d: got %s, want %d", seed, got, i)
						return
					}
				}
			})
		}
		wg.Wait()
		paths[0].calmDown() // an agent repeats its goodbye when asked (see begin), these streams do not
		paths[1].calmDown()
		wg.Go(func() { a.leave("that is all", true) })
		<-b.gone
		if _, more := <-b.in; more || b.reason() != "that is all" {
			t.Errorf("seed %d: a message after the last one, or the reason %q", seed, b.reason())
		}
		b.leave("", true)
		wg.Wait()
		if err := a.send(1); !errors.Is(err, errLeft) {
			t.Errorf("send after leave: %v", err)
		}
		if paths[0].lost == 0 || paths[1].lost == 0 {
			t.Error("nothing was lost")
		}
	}
}

func TestStreamRefusesLargeMessages(t *testing.T) {
	s := newStream(func([]byte) { t.Error("sent") }, 300, time.Hour)
	if err := s.send("0123456789012345678901234567890123456789012345"); err == nil ||
		err.Error() != "a message of 48 bytes, the server takes 44" {
		t.Errorf("error %v", err)
	}
	s.post = func([]byte) {}
	s.leave("", false)
}
