package cuda

import (
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// middle is rank 1 of three: rows [8, 24) of 64 values, halos of 8 rows, and peers on both sides. It has no GPU.
func middle() *direct {
	l := solver.Layout{Mesh: solver.Mesh{NX: 64, NY: 40, DType: solver.Float32}, Stripe: solver.Stripe{Lo: 8, Hi: 24},
		Depth: 8, Neighbour: [2]bool{true, true}}
	b := &Backend{layout: l, flags: 0x5000}
	f := field{rows: l.Held(), pitch: 256}
	b.now, b.next = f, f
	b.now.base, b.next.base = 0x100000, 0x200000
	above := field{base: 0x300000, rows: solver.Stripe{Lo: 0, Hi: 16}, pitch: 256}
	below := field{base: 0x400000, rows: solver.Stripe{Lo: 16, Hi: 40}, pitch: 256}
	top := &Peer{Backend: b, side: solver.Top, theirs: [2]field{{}, above}, mine: b.now.base, words: 0x6000}
	bottom := &Peer{Backend: b, side: solver.Bottom, theirs: [2]field{{}, below}, mine: b.now.base, words: 0x7000}
	b.peers = []*Peer{top, bottom}
	return &direct{Backend: b}
}

// A pass gets the addresses of the rows to fill and of the words to set. Exchanges are numbered in order, and each is
// awaited once.
func TestFuse(t *testing.T) {
	d := middle()
	handed := [2]passSide{
		// This rank's upper edge fills the lower halo of the rank above: its last 8 rows. The word to set is that
		// rank's bottom one, and the count is this rank's top one.
		{to: 0x300000 + 8*256, theirs: 0x6000 + cameAt(solver.Bottom), rows: 0x5000 + countAt(solver.Top)},
		{to: 0x400000, theirs: 0x7000 + cameAt(solver.Top), rows: 0x5000 + countAt(solver.Bottom)},
	}
	awaited := [2]driver.DevicePtr{0x5000 + cameAt(solver.Top), 0x5000 + cameAt(solver.Bottom)}

	var first pass
	d.fuse(&first, true)
	if want := (pass{sides: handed, posted: 1, depth: 8}); first != want {
		t.Errorf("first pass: %+v\nwant %+v", first, want)
	}
	ctx := t.Context()
	if err := d.post(ctx, 1); err != nil { // launches nothing: there is no driver
		t.Fatal(err)
	}
	if err := d.wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if d.posted != 1 {
		t.Errorf("posted %d, want 1", d.posted)
	}

	var second, again pass
	d.fuse(&second, true)
	want := pass{sides: handed, awaited: 1, posted: 2, depth: 8}
	for side, word := range awaited {
		want.sides[side].came = word
	}
	if second != want {
		t.Errorf("second pass: %+v\nwant %+v", second, want)
	}
	if d.fuse(&again, false); again != (pass{}) {
		t.Errorf("a pass without an exchange after it, with no rows awaited: %+v", again)
	}
	if err := d.settle(); err != nil { // launches nothing
		t.Fatal(err)
	}
}

// A halo deeper than a pass may not be free when the pass ends, so push_rows, which checks, hands the rows on.
func TestFuseLeavesDeepHalosAlone(t *testing.T) {
	d := middle()
	d.layout.Depth = 20
	d.awaited = 3
	var p pass
	d.fuse(&p, true)
	want := pass{awaited: 3}
	want.sides[solver.Top].came, want.sides[solver.Bottom].came = 0x5000+cameAt(solver.Top),
		0x5000+cameAt(solver.Bottom)
	if p != want || d.handed != 0 {
		t.Errorf("%+v, handed %d\nwant %+v", p, d.handed, want)
	}
}

// A rank that is its own neighbour hands its upper edge to its lower halo, and its lower edge to its upper one, without
// any waiting.
func TestFuseOfARankAlone(t *testing.T) {
	d := middle()
	d.peers = nil
	if err := d.wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	var p pass
	d.fuse(&p, true)
	if want := (pass{sides: [2]passSide{{to: 0x200000 + 24*256}, {to: 0x200000}}, posted: 1, depth: 8}); p != want {
		t.Errorf("%+v\nwant %+v", p, want)
	}
}
