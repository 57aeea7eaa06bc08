package halo_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	. "jacobi/halo"
	"jacobi/solver"
)

// TestDirectPacks sends rows packed over sockets, and over NATS while the sockets are cut: the rows are the same, all
// of them are packed, and they get smaller. Without halo.compress none are.
func TestDirectPacks(t *testing.T) {
	s := serve(t, server.Options{})
	const count = 60
	for _, c := range []struct {
		name    string
		mode    Compress
		streams int
		encrypt bool
		packed  uint64 // exchanges
	}{
		{"never", CompressNever, 1, false, 0},
		{"always", CompressAlways, 1, false, count},
		{"always, encrypted, three sockets", CompressAlways, 3, true, count},
		{"auto, in the trial", CompressAuto, 1, false, TrialLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := directOptions()
			o.NATS.Compress, o.Streams, o.Encrypt = c.mode, c.streams, c.encrypt
			// Nobody asks but after a loss: rows that are asked for travel plain.
			o.NATS.AskAfter, o.NATS.MaxAskAfter, o.NATS.Timeout = long, long, 2*long
			e := freshEnd(4096, 2)
			a, b, p := throughProxy(t, s, e, o)
			last := solver.ExchangeNumber(count)
			if c.mode == CompressAuto {
				last = 2 * TrialLength // later ones depend on how long these take
			}
			both(t, a, b, e, 0, last/2, nil)
			half := uint64(last/2) * uint64(e.SendBytes()) * min(1, c.packed)
			if c.mode == CompressAuto {
				half = 0 // the plain half of the trial
			}
			for _, l := range []*FramedLink{a, b} {
				if n := l.DirectStats(); n.Plain != half {
					t.Errorf("%d bytes of %d exchanges were packed, want %d", n.Plain, last/2, half)
				}
			}
			if c.mode != CompressAuto {
				p.cut()
				until(t, "the sockets break", func() bool {
					return a.DirectStats().Lost > 0 && b.DirectStats().Lost > 0
				})
			}
			both(t, a, b, e, last/2, last/2, nil)
			for _, l := range []*FramedLink{a, b} {
				n := l.DirectStats()
				if want := c.packed * uint64(e.SendBytes()); n.Plain != want || n.Packed*10 > n.Plain ||
					(n.Packed == 0) != (c.packed == 0) {
					t.Errorf("%+v, want %d bytes packed to less than a tenth", n, want)
				}
			}
		})
	}
}
