package wire

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"jacobi/internal/base/pubsub"
	"jacobi/internal/net/roster/rostertest"
)

// A request is repeated while nobody listens, while answers are lost or strange, and while the server restarts.
func TestAskRepeatsUntilAnswered(t *testing.T) {
	s := rostertest.Start(t, 0)
	for _, runSecret := range []string{"", secret} {
		a, _ := join(t, s, "r1", runSecret)
		b, _ := join(t, s, "r1", runSecret)
		var asked atomic.Int32
		first := make(chan struct{})
		go func() {
			<-first
			s.Restart()
			_, err := b.Subscribe("jacobi.r1.ask", func(m pubsub.Message) {
				switch asked.Add(1) {
				case 1: // lost
				case 2:
					_ = b.Publish(m.Reply, []byte("nonsense"))
				default:
					_ = b.Publish(m.Reply, append([]byte("you said "), m.Data...))
				}
			})
			if err != nil {
				t.Error(err)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got string
		refused := 0
		close(first)
		err := Ask(ctx, a, "jacobi.r1.ask", []byte("hello"), Pace{50 * time.Millisecond, 200 * time.Millisecond},
			func(m pubsub.Message) bool {
				got = string(m.Data)
				if got == "nonsense" {
					refused++
				}
				return got != "nonsense"
			})
		if err != nil || got != "you said hello" || refused != 1 || asked.Load() < 3 {
			t.Errorf("sealed %v: %q, %v; %d answers refused, asked %d times", a.Sealed(), got, err, refused,
				asked.Load())
		}
		a.Close()
		b.Close()
	}
}

func TestAskEnds(t *testing.T) {
	s := rostertest.Start(t, 1000)
	for _, runSecret := range []string{"", secret} {
		c, _ := join(t, s, "r1", runSecret)
		never := func(pubsub.Message) bool { t.Error("answered"); return false }
		pace := Pace{time.Millisecond, 10 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := Ask(ctx, c, "jacobi.r1.nobody", nil, pace, never); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody listens: %v", err)
		}
		cause := errors.New("the user is gone")
		gone, leave := context.WithCancelCause(t.Context())
		leave(cause)
		if err := Ask(gone, c, "jacobi.r1.nobody", nil, pace, never); !errors.Is(err, cause) {
			t.Errorf("error %v, want %v", err, cause)
		}
		large := make([]byte, 2000)
		if err := Ask(t.Context(), c, "jacobi.r1.nobody", large, pace, never); !errors.Is(err, nats.ErrMaxPayload) {
			t.Errorf("2000 bytes to a server that takes 1000: %v, want %v", err, nats.ErrMaxPayload)
		}
		c.Close()
		if err := Ask(t.Context(), c, "jacobi.r1.nobody", nil, pace, never); !errors.Is(err, pubsub.ErrClosed) {
			t.Errorf("error %v, want %v", err, pubsub.ErrClosed)
		}
	}
}
