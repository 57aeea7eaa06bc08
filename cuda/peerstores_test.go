package cuda

import (
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// middle is rank 1 of three: rows [8, 24) of 64 values, halos of the given depth, and peers on both sides. It has no
// GPU.
func middle(depth int) *peerStores {
	l := solver.Layout{Mesh: solver.Mesh{NX: 64, NY: 40, DType: solver.Float32}, Stripe: solver.Stripe{Lo: 8, Hi: 24},
		Depth: depth, Neighbour: [2]bool{true, true}}
	d := &device{layout: l, flags: 0x5000}
	d.now = field{base: 0x100000, rows: l.Held(), pitch: 256}
	d.next = field{base: 0x200000, rows: l.Held(), pitch: 256, index: 1}
	above := field{base: 0x300000, rows: solver.Stripe{Lo: 0, Hi: 8 + depth}, pitch: 256, index: 1}
	below := field{base: 0x400000, rows: solver.Stripe{Lo: 24 - depth, Hi: 40}, pitch: 256, index: 1}
	top := &peer{side: solver.Top, depth: depth, theirs: [2]field{{}, above}, words: 0x6000}
	bottom := &peer{side: solver.Bottom, depth: depth, theirs: [2]field{{}, below}, words: 0x7000}
	return &peerStores{dev: d, peers: []*peer{top, bottom}}
}

// The kernel of a pass gets the addresses of the rows to fill and of the words to set. Each exchange is awaited once.
func TestInKernel(t *testing.T) {
	d := middle(8)
	handed := [2]passSide{
		// This rank's upper edge fills the lower halo of the rank above: its last 8 rows. The word to set is that
		// rank's bottom one, and the count is this rank's top one.
		{to: 0x300000 + 8*256, theirs: 0x6000 + 128, rows: 0x5000 + 4*128},
		{to: 0x400000, theirs: 0x7000, rows: 0x5000 + 5*128},
	}
	if first, want := d.inKernel(1), (halos{sides: handed, posted: 1}); first != want {
		t.Errorf("first pass: %+v\nwant %+v", first, want)
	}
	ctx := t.Context()
	if err := d.post(ctx, 1); err != nil { // launches nothing: there is no driver
		t.Fatal(err)
	}
	if err := d.wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	want := halos{sides: handed, awaited: 1, posted: 2}
	want.sides[solver.Top].came, want.sides[solver.Bottom].came = 0x5000, 0x5000+128
	if second := d.inKernel(2); second != want {
		t.Errorf("second pass: %+v\nwant %+v", second, want)
	}
	if again := d.inKernel(0); again != (halos{}) {
		t.Errorf("a pass without an exchange after it, with no rows awaited: %+v", again)
	}
	if err := d.awaitRows(); err != nil { // launches nothing
		t.Fatal(err)
	}
}

// The neighbour's field with the index of this rank's next gets the rows.
func TestHalosAlternate(t *testing.T) {
	p := &peer{side: solver.Top, depth: 8, theirs: [2]field{
		{base: 0x300000, rows: solver.Stripe{Lo: 0, Hi: 16}, pitch: 256},
		{base: 0x900000, rows: solver.Stripe{Lo: 0, Hi: 16}, pitch: 256, index: 1},
	}}
	d := middle(8)
	d.peers = []*peer{p}
	for pass, want := range []driver.DevicePtr{0x900000 + 8*256, 0x300000 + 8*256, 0x900000 + 8*256} {
		if to := d.sides()[solver.Top].to; to != want {
			t.Errorf("pass %d: rows go to %#x, want %#x", pass, to, want)
		}
		d.dev.now, d.dev.next = d.dev.next, d.dev.now
	}
}

// A halo deeper than a pass may not be free when the pass ends, so push_rows, which checks, hands the rows on.
func TestInKernelLeavesDeepHalosAlone(t *testing.T) {
	d := middle(16 + 4)
	d.awaited = 3
	want := halos{awaited: 3}
	want.sides[solver.Top].came, want.sides[solver.Bottom].came = 0x5000, 0x5000+128
	if h := d.inKernel(4); h != want || d.handed != 0 {
		t.Errorf("%+v, handed %d\nwant %+v", h, d.handed, want)
	}
}

// A rank that is its own neighbour hands its upper edge to its lower halo, and its lower edge to its upper one, without
// any waiting.
func TestInKernelOfARankAlone(t *testing.T) {
	d := middle(8)
	d.peers = nil
	if err := d.wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if h, want := d.inKernel(1),
		(halos{sides: [2]passSide{{to: 0x200000 + 24*256}, {to: 0x200000}}, posted: 1}); h != want {
		t.Errorf("%+v\nwant %+v", h, want)
	}
}
