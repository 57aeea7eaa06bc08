package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jacobi/internal/base/pubsub"
)

func TestStreamRefusesHostileFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _, fromB := pair(4, Pace{time.Second, time.Second})
		fromB.fault = func([]byte) [][]byte { return nil }
		chunk := Frame{kind: frameChunk, last: true, seq: 1, total: 3, data: []byte("abc")}
		for _, f := range []Frame{
			{kind: frameChunk, last: true, seq: 6, total: 1, data: []byte("x")},                 // outside the window
			{kind: frameChunk, last: true, seq: 1 << 63, total: 1, data: []byte("x")},           // far outside
			{kind: frameChunk, last: false, seq: 1, total: MaxMessage + 1, data: []byte("big")}, // too large
			{kind: frameAck, taken: 7, held: 9},                                                 // not sent
			{kind: frameAck, taken: 2, held: 1},
		} {
			b.Receive(f)
		}
		if len(b.arrived) != 0 || b.acked != 0 || b.theirHeld != 0 {
			t.Errorf("%d chunks were kept, %d acknowledged, %d held", len(b.arrived), b.acked, b.theirHeld)
		}
		b.Receive(chunk)
		b.Receive(Frame{kind: frameChunk, last: true, seq: 1, total: 3, data: []byte("xyz")}) // comes too late
		if got, err := b.Recv(t.Context()); err != nil || string(got) != "abc" {
			t.Errorf("%q, %v", got, err)
		}
		b.Receive(Frame{kind: frameChunk, seq: 2, total: 5, data: []byte("abc")})
		b.Receive(Frame{kind: frameChunk, seq: 3, last: true, total: 5, data: []byte("abc")})
		want := "chunk 3 makes 6 bytes of 5, and 5 were announced"
		for range 2 {
			if _, err := b.Recv(t.Context()); err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		if err := a.Send(t.Context(), make([]byte, MaxMessage+1)); err == nil ||
			!strings.HasSuffix(err.Error(), "at most 67108864 go in a message") {
			t.Errorf("error %v", err)
		}
		a.o.Conn.(*path).payload = frameHead
		if err := a.Send(t.Context(), nil); err == nil || err.Error() != "the server's max_payload of 40 is too small" {
			t.Errorf("error %v", err)
		}
	})
}

// A connection that was closed fails the stream; one that breaks does not.
func TestStreamOverAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, fromA, _ := pair(4, Pace{time.Second, time.Second})
		fromA.err = fmt.Errorf("connection reset: %w", pubsub.ErrLost)
		if err := a.Send(t.Context(), sample(1)); err != nil {
			t.Fatal(err)
		}
		fromA.mu.Lock()
		fromA.err = nil
		fromA.mu.Unlock()
		if got, err := b.Recv(t.Context()); err != nil || !bytes.Equal(got, sample(1)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		fromA.mu.Lock()
		fromA.err = pubsub.ErrClosed
		fromA.mu.Unlock()
		for range 2 {
			if err := a.Send(t.Context(), sample(1)); !errors.Is(err, pubsub.ErrClosed) {
				t.Errorf("error %v, want %v", err, pubsub.ErrClosed)
			}
		}
	})
}

func FuzzParseFrame(f *testing.F) {
	for _, g := range []Frame{
		{kind: frameChunk, label: "gather<x", seq: 7, taken: 3, held: 4, total: 5, data: []byte("abc")},
		{kind: frameChunk, seq: 1, last: true},
		{kind: frameAck, taken: 2, held: 9},
		{kind: frameBye, data: []byte("that is all")},
	} {
		b := g.encode()
		f.Add(b)
		for i := range b { // without the checksum, all would be refused for it
			b := bytes.Clone(b[:len(b)-1])
			b[i%len(b)] ^= 0x81
			if len(b) > frameTail {
				body := b[:len(b)-frameTail]
				binary.LittleEndian.PutUint32(b[len(body):], checksum(body))
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseFrame(b)
		if err == nil && !bytes.Equal(got.encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, got, got.encode())
		}
		if err == nil {
			_, end, _, _ := pair(4, Pace{time.Hour, time.Hour})
			end.Receive(got)
			end.Stop()
		}
	})
}
