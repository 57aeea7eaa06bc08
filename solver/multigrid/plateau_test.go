package multigrid

import (
	"math"
	"slices"
	"testing"
)

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
		if !p.patient(false) {
			t.Fatalf("no patience for %d norms", want)
		}
		if n := after(p, 1.5e-4); n != want {
			t.Errorf("a plateau after %d norms, want %d", n, want)
		}
	}
	if p.patient(false) {
		t.Error("patience for more than 16 norms")
	}
	p = &plateau{patience: patience}
	p.Add(1)
	if n := after(p, 3); n != 40 {
		t.Errorf("a plateau after %d norms, want 40", n)
	}
}

// A run may have stalled with a norm that falls more slowly than the one before it and than cgRate, and is no larger
// than the floor of rounding may be. Its patience stays, and the next such norm must be a sixteenth as large.
func TestSlackenedNorms(t *testing.T) {
	for _, c := range []struct {
		name  string
		norms []float64
		want  []int // norms that were added when it may have stalled
	}{
		{"at the floor", []float64{1, 1e-3, 1e-6, 1e-9, 5e-10, 4e-10, 3e-10}, []int{5}},
		{"above what the floor may be", []float64{1, 1e-3, 1e-5, 5e-6, 4e-6, 3e-6}, []int{}},
		{"the second norm", []float64{1e-9, 5e-10, 4e-10}, []int{}},
		{"as slowly from the beginning", []float64{1, 0x1p-20, 0x1p-22, 0x1p-24, 0x1p-25}, []int{3}},
		{"fast again", []float64{1, 1e-7, 9e-8, 5e-9, 3e-9, 1e-10, 9e-11}, []int{3, 5, 7}},
		{"fast, but not a sixteenth", []float64{1, 1e-7, 9e-8, 7e-9, 6.5e-9}, []int{3}},
		{"just a sixteenth", []float64{1, 0x1p-30, 0x1p-34, 0x1p-38}, []int{}},
		{"just twice the rate", []float64{1, 0x1p-3, 0x1p-24, 0x1p-27, 0x1p-29, 0x1p-30}, []int{4}},
		{"a norm of 0", []float64{1, 1e-9, 0, 0, 0, 0, 0}, []int{7}},
		{"at the floor, with patience at its end", []float64{1, 1e-9, 1e-9, 2e-9, 2e-9, 2e-9}, []int{3, 6}},
	} {
		p := &plateau{patience: patience, reach: 1e-6}
		got := []int{}
		for i, norm := range c.norms {
			if p.Add(norm) {
				got = append(got, i+1)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: may have stalled with norms %d, want %d", c.name, got, c.want)
		}
	}
}

// Norms of cycles with conjugate gradients come in waves: a run waits for at least 64 norms, and for as many as came
// before the least one.
func TestPatienceWithWaves(t *testing.T) {
	for _, c := range []struct{ falling, want int }{{5, 4 + 8 + 16 + 32 + 64}, {200, 4 + 8 + 16 + 32 + 64 + 128}} {
		p := &plateau{patience: patience}
		for i := range c.falling {
			p.Add(1 / float64((1+i)*(1+i)))
		}
		n, least := 0, p.least
		for more := true; more; n++ {
			more = !p.Add(1.5*least) || p.patient(true)
		}
		if n != c.want {
			t.Errorf("the run ends %d norms after the least of %d, want %d", n, c.falling, c.want)
		}
	}
	p := &plateau{patience: patience}
	for wave := range 12 { // each a thousandth below the one before
		for i := range 40 {
			if p.Add(math.Pow(0.999, float64(wave))*float64(1+i)) && !p.patient(true) {
				t.Fatalf("the run ends in wave %d", wave)
			}
		}
	}
}
