package cuda

import (
	"fmt"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// weightedLevels compares the levels of a weighted operator, conjugate gradients and their memory with the definitions.
func weightedLevels(t *testing.T, d *driver.Driver, o Options, cases []leveltest.Case) {
	open := func(l multigrid.Layout) (multigrid.Device, error) {
		v, err := NewLevels(d, l, o)
		if err == nil && v.Bytes() != LevelsBytes(l) {
			err = fmt.Errorf("%d bytes are used, LevelsBytes is %d", v.Bytes(), LevelsBytes(l))
		}
		return v, err
	}
	for i, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			if err := leveltest.Check(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
			if i%2 == 1 {
				return
			}
			if err := leveltest.CheckCG(t.Context(), c, accelerated(d, o)); err != nil {
				t.Fatalf("conjugate gradients: %v", err)
			}
		})
	}
}

// The levels of a weighted operator pass the conformance suite, as machine code and as PTX.
func TestWeightedLevels(t *testing.T) {
	d := need(t)
	for _, ptx := range []bool{false, true} {
		weightedLevels(t, d, Options{PTX: ptx}, leveltest.WeightedCases())
	}
}

// Some do so on the CPU: every wall, the directions coarsened and the numbers of ranks are among them.
func TestWeightedLevelsOnFibers(t *testing.T) {
	d, all := emulatedAlone(t), leveltest.WeightedCases()
	var some []leveltest.Case
	for i := 0; i < len(all); i += 5 {
		some = append(some, all[i])
	}
	for _, c := range all {
		if c.Mesh.NX > 900 { // several strips of columns
			some = append(some, c)
		}
	}
	weightedLevels(t, d, Options{}, some)
}

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
