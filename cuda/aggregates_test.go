package cuda

import (
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// manyBlocks is a limit with which several blocks do the first levels of most cases.
const manyBlocks = 300

// aggregatesOn compares aggregates with the definitions. One block does all levels of at most few unknowns.
func aggregatesOn(t *testing.T, d *driver.Driver, o Options, few int) {
	open := accelerated(d, o)
	leveltest.RunAggregates(t, func(l multigrid.Layout) (multigrid.Device, multigrid.CG, error) {
		v, s, err := open(l)
		if err == nil {
			v.(*Levels).weighted.few = few
		}
		return v, s, err
	})
}

// Aggregates pass the conformance suite, as machine code and as PTX.
func TestAggregates(t *testing.T) {
	d := need(t)
	for _, ptx := range []bool{false, true} {
		aggregatesOn(t, d, Options{PTX: ptx}, fewUnknowns)
		aggregatesOn(t, d, Options{PTX: ptx}, manyBlocks)
	}
}

// And on the CPU.
func TestAggregatesOnFibers(t *testing.T) { aggregatesOn(t, emulatedAlone(t), Options{}, manyBlocks) }
