package cuda

import (
	"jacobi/cuda/driver"
	"jacobi/solver/multigrid"
)

// coarsestArg is struct Direct in kernels/multigrid_direct.cuh.
type coarsestArg struct {
	inverse, ring, free, slot, x driver.DevicePtr
	along, high, low             float64
	slots, blocks, chain         int32
	_                            int32
}

// openCoarsest uploads the matrices of the coarsest level, whose points are those of t.
func (v *Levels) openCoarsest(t *tailTables) (a coarsestArg, err error) {
	d, err := v.layout.NewDirect()
	if err != nil {
		return a, err
	}
	a = coarsestArg{along: d.Low(0), high: d.High(0), low: d.Low(d.Blocks - 1), slots: int32(d.Slots),
		blocks: int32(d.Blocks), chain: int32(d.Chain)}
	if a.inverse, err = uploadTable(v.dev, d.Inverse); err != nil {
		return a, err
	}
	if a.ring, err = uploadTable(v.dev, d.Ring); err != nil {
		return a, err
	}
	free, slot := coarsestSlots(d, t)
	if a.free, err = uploadTable(v.dev, free); err != nil {
		return a, err
	}
	if a.slot, err = uploadTable(v.dev, slot); err != nil {
		return a, err
	}
	a.x, err = uploadTable(v.dev, make([]float64, d.Blocks*d.Slots))
	return a, err
}

// coarsestSlots returns a bit for each slot of the blocks that is free, and for each point of t its slot.
func coarsestSlots(d *multigrid.Direct, t *tailTables) (free []uint32, slot []int32) {
	free = make([]uint32, d.Blocks)
	slots := map[[2]int]int32{}
	for i := range d.Blocks {
		for j := range d.Slots {
			if d.Free(i, j) {
				free[i] |= 1 << j
				x, y := d.Point(i, j)
				slots[[2]int{y, x}] = int32(i*d.Slots + j)
			}
		}
	}
	for _, at := range t.at {
		row, column := t.point(at)
		slot = append(slot, slots[[2]int{row, column}])
	}
	return free, slot
}

// coarsestMemory returns the bytes of GPU memory that openDirect takes.
func coarsestMemory(l multigrid.Layout) int64 {
	t := newTailTables(l, len(l.Plan.Levels)-1)[0]
	slots, blocks, bytes := l.DirectSize()
	return bytes + int64(blocks)*(4+8*int64(slots)) + 4*int64(len(t.at))
}
