package cuda

import (
	_ "embed"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// The kernels for sweeps with weights, as those of plain sweeps.
var (
	//go:embed kernels/weighted.ptx
	weightedPTX []byte
	//go:embed kernels/weighted_90.cubin
	weighted90 []byte
)

// maxWeights is the largest number of sweeps with weights in a pass.
const maxWeights = 16

// weightedPass is the argument of the kernels for sweeps with weights: struct WeightedPass in kernels/terms.cuh.
type weightedPass struct {
	termsPass
	weights [maxWeights]float64
}

// weightedShapes returns the kernels for sweeps with weights. They have the shapes of kernels with terms.
func weightedShapes(l solver.Layout) []shape {
	suffix, s := "weighted_f64", fixedF64
	if l.Operator.Source != nil {
		suffix, s = "weighted_source_f64", sourceF64
	}
	both := []shape{once(suffix), deep("sweep_"+suffix, s)}
	for i := range both {
		both[i].weighted = true
	}
	return both
}

// openWeighted loads the kernels for sweeps with weights, if the layout has any.
func (b *Backend) openWeighted(ptx bool) (err error) {
	d := b.dev
	if len(d.layout.Weights) == 0 {
		return nil
	}
	code := weightedPTX
	if !ptx && hopper(d.gpu) {
		code = weighted90
	}
	var m *driver.Module
	if m, err = d.context.Load(code); err != nil {
		return err
	}
	d.onClose(m.Close)
	b.weighted, err = b.loadKernels(m, weightedShapes(d.layout))
	return err
}

// weightsOf returns the weights of the sweeps of a pass.
func (d *device) weightsOf(sp solver.Pass) (w [maxWeights]float64) {
	for i := range sp.Sweeps {
		w[i] = d.layout.Weights.At(sp.First + i)
	}
	return w
}
