package e2e

import (
	"fmt"
	"reflect"
	"testing"
)

// Electrodes between points of the mesh give the same bits and the same charges for any number of ranks, with either
// method and type. They are told apart as they are connected.
func TestThinElectrodes(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"connected": {"problem.fixed=hypot(x-0.3,y-0.4)<0.13 or y == 0.75 and abs(x-0.5)<0.3 or abs(x+y-1.3)<0.001 " +
			"and y<0.5", "problem.initial=y > 0.6 ? 2 : x > 0.6 ? -1 : 1", "problem.left=0",
			"problem.coefficient=x<0.51 ? 1 : 4"},
		"named": {"problem.regions=ring value=1 where=abs(hypot(x-0.4,y-0.5)-0.2) < 0.0005; wire value=-1 " +
			"where=x == 0.7 and y > 0.3", "problem.left=periodic", "problem.right=periodic", "problem.screening=3"},
	} {
		for method, dtype := range map[string]string{"multigrid": "float64", "jacobi": "float32"} {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				base := with(keys, "grid.nx=100", "grid.ny=93", "solver.method="+method, "grid.dtype="+dtype,
					"solver.max_iterations=300")
				want, r := solve(t, onRanks(1, base...)...)
				if method == "multigrid" && (r.Verdict != "met" || want.sweeps > 12) {
					t.Errorf("%s after %d cycles", r.Verdict, want.sweeps)
				}
				if n := map[string]int{"connected": 3, "named": 2}[name]; len(r.Results.Regions) != n {
					t.Errorf("%d regions, want %d: %+v", len(r.Results.Regions), n, r.Results.Regions)
				}
				for _, n := range []int{2, 3, 8} {
					got, other := solve(t, onRanks(n, base...)...)
					same(t, got, want, fmt.Sprint(n, " ranks"))
					if !reflect.DeepEqual(other.Results, r.Results) {
						t.Errorf("%d ranks: results %+v, want %+v", n, other.Results, r.Results)
					}
				}
			})
		}
	}
}
