package transpose

// slice is the part [lo, hi) of n rows that GPU i of several has.
func slice(n, i, gpus int) (lo, hi int) { return n * i / gpus, n * (i + 1) / gpus }

// block is what GPU `to` transposes in one stage: a block of the matrix that GPU `from` holds. The matrix of NY rows is
// divided among the GPUs by rows, and so is the transpose of NX rows. On four GPUs the slices of a matrix of 1024 x 768
// are 1024 x 192 values of the matrix and 768 x 256 of the transpose; a block has 256 x 192 values.
//
//	stage 0   every GPU transposes the block on the diagonal, which it holds itself
//	stage s   every GPU fetches its block from the s-th GPU after it, modulo their number, and transposes it
//
// In each stage every GPU gives one block and takes one, so all links between GPUs are in use in both directions.
type block struct {
	from, to int
	rows     [2]int // of the matrix, [lo, hi): the slice of `from`
	columns  [2]int // of the matrix: rows of the transpose in the slice of `to`
}

// blockOf returns the block of a GPU in a stage.
func (m Matrix) blockOf(to, stage, gpus int) block {
	b := block{from: (to + stage) % gpus, to: to}
	b.rows[0], b.rows[1] = slice(m.NY, b.from, gpus)
	b.columns[0], b.columns[1] = slice(m.NX, to, gpus)
	return b
}

func (b block) height() int { return b.rows[1] - b.rows[0] }
func (b block) width() int  { return b.columns[1] - b.columns[0] }
