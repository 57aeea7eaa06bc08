package cuda

import (
	"bytes"
	"testing"

	"jacobi/solver"
)

// The kernels for sweeps with weights are in the module, and for every number of sweeps one of them does a pass.
func TestWeightedShapes(t *testing.T) {
	h200 := capacity{sms: 132, shared: 227 << 10, held: 3}
	m := solver.Mesh{NX: 16384, NY: 16384, DType: solver.Float64}
	for want, source := range map[string]solver.SourceRows{"weighted_f64": nil, "weighted_source_f64": noSource{}} {
		l := solver.Layout{Mesh: m, Operator: solver.Operator{Source: source}.General()}
		all := weightedShapes(l)
		if len(all) != 2 || all[0].name != "once_"+want || all[1].name != "sweep_"+want {
			t.Errorf("%+v, want once_%s and sweep_%[2]s", all, want)
		}
		for _, s := range all {
			if !bytes.Contains(weightedPTX, []byte(".entry "+s.name+"(")) || !s.weighted || s.maxSweeps > maxWeights {
				t.Errorf("%s: %+v", want, s)
			}
		}
		for sweeps := 2; sweeps <= MaxSweeps(m); sweeps++ {
			p := pass{nx: int32(m.NX), outHi: int32(m.NY), countHi: int32(m.NY), sweeps: int32(sweeps)}
			if _, ok := all[1].divide(h200, &p); !ok || sweeps > all[1].maxSweeps {
				t.Errorf("%s does not do %d sweeps a pass", all[1].name, sweeps)
			}
		}
	}
}

// noSource stands for a source that is not read.
type noSource struct{}

func (noSource) SourceRow(int, []byte) error { return nil }

// The weights of a pass are those of its sweeps. Halos of several rows outlast a plain sweep between weighted ones, so
// their neighbours have to say when they are free.
func TestWeightsOfAPass(t *testing.T) {
	d := &device{layout: solver.Layout{Mesh: solver.Mesh{NX: 99, NY: 99, DType: solver.Float64}, Depth: 4,
		Weights: solver.Weights{0, 3, 4, 5}}}
	if got, want := d.weightsOf(solver.Pass{First: 5, Sweeps: 2, Weighted: true}),
		[maxWeights]float64{3, 4}; got != want {
		t.Errorf("weights %v, want %v", got, want)
	}
	for _, c := range []struct {
		depth   int
		weights solver.Weights
		want    bool
	}{{4, d.layout.Weights, true}, {1, d.layout.Weights, false}, {4, nil, false}, {40, nil, true}} {
		d.layout.Depth, d.layout.Weights = c.depth, c.weights
		if got := d.deep(); got != c.want {
			t.Errorf("depth %d, weights %v: %v, want %v", c.depth, c.weights, got, c.want)
		}
	}
}
