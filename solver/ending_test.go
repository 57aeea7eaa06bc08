package solver

import "testing"

// The newest pass can be undone but no earlier one, so the next pass waits for the norm of a sweep if that norm could
// end the run before the newest pass.
func TestNormsThatMayEndTheRunBeforeAPass(t *testing.T) {
	e := newEnding(Traits{Delay: 2, Stall: &Repeats{}}, Goal{Tolerance: 0.5}, 100)
	for sweep := range 5 {
		e.judge(sweep, 1, "")
	}
	for sweeps, want := range map[int]bool{5: false, 6: false, 7: false, 8: true, 9: true, 30: true} {
		if got := e.mayEndBefore(sweeps); got != want {
			t.Errorf("norms of sweeps 0 to 4 known: one may end the run before sweep %d: %v, want %v", sweeps, got,
				want)
		}
	}
	e.judge(5, 0.5, e.rule.Add(0.5))
	if e.mayEndBefore(30) {
		t.Error("the end is known, but a norm may end the run before it")
	}
}
