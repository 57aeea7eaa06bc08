package transpose

import (
	"context"
	"fmt"

	"jacobi/internal/tools/probe/timing"
)

// side is the side of the tiles of the blocked transpose, in values. Two tiles of 8-byte values fill half of a
// first-level cache of 32 KiB.
const side = 32

// OnCPU measures transposes in Go on all cores, a copy first: naive goes through the matrix row by row, so it writes a
// new cache line for each value; blocked goes through it tile by tile, so lines stay in the cache until they are full.
func OnCPU(ctx context.Context, m Matrix) ([]Kernel, error) {
	in, out := make([]byte, m.Bytes()), make([]byte, m.Bytes())
	m.fill(in, 0, m.NY)
	copied, err := timing.Fastest(ctx, tries, func() {
		each(len(in), func(from, to int) { copy(out[from:to], in[from:to]) })
	})
	if err != nil {
		return nil, err
	}
	all := []Kernel{newKernel("copy", m.Bytes(), copied, copied)}
	for _, way := range []struct {
		name string
		tile int
	}{{"naive", 0}, {"blocked", side}} {
		clear(out)
		took, err := timing.Fastest(ctx, tries, func() { m.onCores(out, in, way.tile) })
		if err != nil {
			return nil, err
		}
		if err := m.checkTransposed(out, 0, m.NX); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, newKernel(way.name, m.Bytes(), took, copied))
	}
	return all, nil
}

// onCores transposes in into out, each core some rows of in, in tiles with the given side; 0: row by row.
func (m Matrix) onCores(out, in []byte, tile int) {
	if m.Value == 4 {
		onCores(words[uint32](out), words[uint32](in), m.NX, m.NY, tile)
	} else {
		onCores(words[uint64](out), words[uint64](in), m.NX, m.NY, tile)
	}
}
