package transpose

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
)

// value returns what is stored at index i of a matrix: its low bytes differ between neighbours, and all of them between
// places that are mixed up easily.
func value(i int) uint64 {
	h := (uint64(i) + 1) * 0x9E3779B97F4A7C15
	return h ^ h>>32
}

// fill fills rows [lo, hi) of the matrix into b, which begins at row lo.
func (m Matrix) fill(b []byte, lo, hi int) {
	each((hi-lo)*m.NX, func(from, to int) {
		for i := from; i < to; i++ {
			v := value(lo*m.NX + i)
			if m.Value == 4 {
				binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
			} else {
				binary.LittleEndian.PutUint64(b[8*i:], v)
			}
		}
	})
}

// at returns value i of b.
func (m Matrix) at(b []byte, i int) uint64 {
	if m.Value == 4 {
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return binary.LittleEndian.Uint64(b[8*i:])
}

// wants returns the value of the matrix at row y and column x.
func (m Matrix) wants(y, x int) uint64 {
	if v := value(y*m.NX + x); m.Value == 8 {
		return v
	} else {
		return uint64(uint32(v))
	}
}

// checkTransposed compares b with rows [lo, hi) of the transpose, whose rows have NY values.
func (m Matrix) checkTransposed(b []byte, lo, hi int) error {
	return m.check((hi-lo)*m.NY, func(i int) (got, want uint64, row, column int) {
		row, column = lo+i/m.NY, i%m.NY
		return m.at(b, i), m.wants(column, row), row, column
	})
}

// checkCopied compares b with the matrix.
func (m Matrix) checkCopied(b []byte) error {
	return m.check(m.NX*m.NY, func(i int) (got, want uint64, row, column int) {
		row, column = i/m.NX, i%m.NX
		return m.at(b, i), m.wants(row, column), row, column
	})
}

// check compares n values. The error names the first difference that one of the threads meets.
func (m Matrix) check(n int, at func(i int) (got, want uint64, row, column int)) error {
	var once sync.Once
	var wrong error
	each(n, func(from, to int) {
		for i := from; i < to; i++ {
			if got, want, row, column := at(i); got != want {
				once.Do(func() {
					wrong = fmt.Errorf("WRONG: row %d, column %d of the result holds %#x, not %#x", row, column, got,
						want)
				})
				return
			}
		}
	})
	return wrong
}

// each divides [0, n) among all cores.
func each(n int, do func(from, to int)) {
	threads := min(runtime.GOMAXPROCS(0), max(1, n>>16))
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() { do(n*t/threads, n*(t+1)/threads) })
	}
	wg.Wait()
}
