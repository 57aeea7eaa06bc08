package multigrid

import "testing"

// Four norms above the least one are a plateau, or forty in the first cycles beside fixed points. After
// each of them a run waits twice as long.
func TestPlateau(t *testing.T) {
	after := func(p *plateau, norm float64) (n int) {
		for n = 1; !p.Add(norm); n++ {
		}
		return n
	}
	p := &plateau{patience: patience}
	for _, norm := range []float64{1, 0.5, 1e-3, 1e-4} {
		if p.Add(norm) {
			t.Fatalf("a plateau at %g", norm)
		}
	}
	if n := after(p, 1.5e-4); n != 4 {
		t.Errorf("a plateau after %d norms, want 4", n)
	}
	for _, want := range []int{8, 16} {
		if !p.patient() {
			t.Fatalf("no patience for %d norms", want)
		}
		if n := after(p, 1.5e-4); n != want {
			t.Errorf("a plateau after %d norms, want %d", n, want)
		}
	}
	if p.patient() {
		t.Error("patience for more than 16 norms")
	}
	p = &plateau{patience: patience}
	p.Add(1)
	if n := after(p, 3); n != 40 {
		t.Errorf("a plateau after %d norms, want 40", n)
	}
}
