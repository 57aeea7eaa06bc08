package reduce

import (
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"jacobi/internal/net/roster"
	"jacobi/internal/net/roster/rostertest"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

// TestForeignFrames checks that frames of other runs and damaged ones change nothing, are counted, and are logged once.
func TestForeignFrames(t *testing.T) {
	s := rostertest.Start(t, 0)
	core, logs := observer.New(zap.InfoLevel)
	dial := func(int) roster.Conn { return wire.Over(s.Dial()) }
	reducers := cluster(t, dial, []string{"", "a", "a"}, func(r int, o *Options) {
		if r == 0 {
			o.Log = zap.New(core)
		}
	})
	root := reducers[0].path.(*star)
	good := frame{kind: contribution, run: root.run, pass: 0, rank: 1, c: contributionOf(1, 0)}
	with := func(f func(*frame)) []byte { g := good; f(&g); return g.appendTo(nil) }
	cut := good.appendTo(nil)
	flipped := good.appendTo(nil)
	flipped[40] ^= 1
	noise := [][]byte{
		nil, []byte("hello"), cut[:len(cut)-1], flipped,
		with(func(f *frame) { f.run++ }), with(func(f *frame) { f.rank = 2 }), with(func(f *frame) { f.rank = 0 }),
		with(func(f *frame) { f.kind = total }),
		with(func(f *frame) { f.kind = 9 }), with(func(f *frame) { f.c.Sums = make([]solver.Sum, testSums+1) }),
		frame{kind: pending, run: root.run, rank: 1, waiting: []int{0}}.appendTo(nil),
	}
	conn := s.Dial()
	for _, b := range noise {
		if err := conn.Publish(root.subject("0"), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range [][]byte{nil, with(func(f *frame) { f.kind = total; f.rank = 1 }), good.appendTo(nil)} {
		if err := conn.Publish(root.subject("all"), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	driveAll(t, reducers, 20)
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.refused != len(noise) {
		t.Errorf("%d frames were refused, want %d", root.refused, len(noise))
	}
	if logs.Len() != 1 {
		t.Errorf("%d lines were logged, want 1: %v", logs.Len(), logs.All())
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add(frame{kind: contribution, run: 7, pass: 8, rank: 9, c: contributionOf(1, 2)}.appendTo(nil))
	f.Add(frame{kind: total, c: solver.Contribution{Flags: solver.FlagStop | solver.FlagBusy}}.appendTo(nil))
	f.Add(frame{kind: pending, waiting: []int{3, 4}}.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n, err := decodeFrame(b)
		if n > len(b) || len(b) > 0 && n == 0 {
			t.Errorf("%x: the frame takes %d bytes", b, n)
		}
		if err == nil && !slices.Equal(got.appendTo(nil), b[:n]) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, got, got.appendTo(nil))
		}
	})
}
