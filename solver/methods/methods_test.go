package methods

import (
	"slices"
	"testing"
)

// A method is found by its name, and a name that is none stands for Jacobi's method. Each has what the rest of the
// program asks of it.
func TestTable(t *testing.T) {
	if got, want := Names(nil), []string{"jacobi", "multigrid"}; !slices.Equal(got, want) {
		t.Errorf("methods %v, want %v", got, want)
	}
	for _, m := range All() {
		if got, ok := Find(m.Name); !ok || got != m || Of(m.Name) != m {
			t.Errorf("%s: found %+v, want %+v", m.Name, got, m)
		}
		if _, known := Find(m.Instead); m.Instead != "" && !known || m.Instead == m.Name {
			t.Errorf("%s: %q takes less time", m.Name, m.Instead)
		}
		if m.Unit != Sweep && m.Unit != Cycle || m.SweepsPerIteration < 1 || m.Delay < 0 || m.Halo < 0 {
			t.Errorf("%+v", m)
		}
	}
	if _, ok := Find("auto"); ok || Of("auto").Name != Jacobi || Of("").Name != Jacobi {
		t.Error("auto is a method")
	}
	if got := Names(func(m Method) bool { return m.SomeNorms }); !slices.Equal(got, []string{Jacobi}) {
		t.Errorf("methods with solver.norm_every: %v", got)
	}
}
