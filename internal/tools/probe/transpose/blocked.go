package transpose

import (
	"runtime"
	"sync"
	"unsafe"
)

// words returns b as values. Memory of this size that make returns is aligned for them.
func words[T uint32 | uint64](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}

// onCores transposes ny rows of nx values, with tiles of the given side; 0: row by row. Each core transposes the rows
// of a slice.
func onCores[T uint32 | uint64](out, in []T, nx, ny, tile int) {
	cores := min(runtime.GOMAXPROCS(0), max(1, ny/side))
	var wg sync.WaitGroup
	for c := range cores {
		wg.Go(func() {
			lo, hi := slice(ny, c, cores)
			if tile == 0 {
				naive(out, in, nx, ny, lo, hi)
			} else {
				blocked(out, in, nx, ny, lo, hi, tile)
			}
		})
	}
	wg.Wait()
}

func naive[T uint32 | uint64](out, in []T, nx, ny, lo, hi int) {
	for y := lo; y < hi; y++ {
		for x, v := range in[y*nx : (y+1)*nx] {
			out[x*ny+y] = v
		}
	}
}

// blocked turns each tile in a buffer, as the kernels do in shared memory: rows of the matrix and of its transpose that
// are a power of two of bytes apart fall into few sets of a cache, so a tile cannot stay there.
func blocked[T uint32 | uint64](out, in []T, nx, ny, lo, hi, tile int) {
	buffer := make([]T, tile*tile)
	for y0 := lo; y0 < hi; y0 += tile {
		height := min(tile, hi-y0)
		for x0 := 0; x0 < nx; x0 += tile {
			width := min(tile, nx-x0)
			for y := range height {
				row := in[(y0+y)*nx+x0:][:width]
				for x, v := range row {
					buffer[x*tile+y] = v
				}
			}
			for x := range width {
				copy(out[(x0+x)*ny+y0:][:height], buffer[x*tile:])
			}
		}
	}
}
