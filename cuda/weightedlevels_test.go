package cuda

import (
	"fmt"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
	"jacobi/solver/multigrid/leveltest"
)

// weightedLevels compares the levels of a weighted operator, conjugate gradients and their memory with the definitions.
// With stream set, the rows of all coarser levels stream.
func weightedLevels(t *testing.T, d *driver.Driver, o Options, cases []leveltest.Case, stream bool) {
	open := func(l multigrid.Layout) (multigrid.Device, error) {
		v, err := NewLevels(d, l, o)
		if err == nil && v.Bytes() != LevelsBytes(l) {
			err = fmt.Errorf("%d bytes are used, LevelsBytes is %d", v.Bytes(), LevelsBytes(l))
		}
		if err == nil && stream {
			err = v.weighted.streamAll()
		}
		return v, err
	}
	for i, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			if err := leveltest.Check(t.Context(), c, open); err != nil {
				t.Fatal(err)
			}
			if i%2 == 1 || stream {
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
		for _, stream := range []bool{false, true} {
			weightedLevels(t, d, Options{PTX: ptx}, leveltest.WeightedCases(), stream)
		}
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
	weightedLevels(t, d, Options{}, some, false)
}

// The coarser levels of some stream through blocks whatever their size.
func TestStreamedLevelsOnFibers(t *testing.T) {
	d := emulatedAlone(t)
	var some []leveltest.Case
	for i, c := range leveltest.WeightedCases() {
		if i%5 == 2 || c.Mesh.NX > 900 {
			some = append(some, c)
		}
	}
	weightedLevels(t, d, Options{}, some, true)
}

// streamAll makes the rows of all levels but the coarsest stream.
func (w *weighted) streamAll() error {
	w.rows = 1
	for i := 1; i < len(w.levels)-1; i++ {
		if err := w.prepareCoarser(i); err != nil {
			return err
		}
	}
	return nil
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
