//go:build !race

package driver

import "testing"

// The calls of a sweep allocate nothing for the garbage collector. Under the race detector sync.Pool drops items at
// random, so the test is left out there.
func TestCallsOfASweepAllocateNothing(t *testing.T) {
	c := fake(t)
	f := must(must(c.Load([]byte("good")))(t).Function("sum"))(t)
	s, h, e := must(c.NewStream(0))(t), must(c.AllocHost(64))(t), must(c.NewEvent(false))(t)
	p, a, b := h.Device(), int32(3), 0.5
	args := must(f.Args(&p, &a, &b))(t)
	n := testing.AllocsPerRun(100, func() {
		check(t, f.Launch(s, Dim{X: 1}, Dim{X: 1}, 0, args))
		check(t, s.Copy2D(p.Rows(8), h.Rows(32, 4), 4, 2))
		check(t, s.WriteValue(p, 5))
		check(t, s.WaitValue(p, 5))
		check(t, e.Record(s))
		check(t, s.Wait(e))
		must(e.Done())(t)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
