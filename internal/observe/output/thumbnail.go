package output

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"

	"jacobi/internal/base/parallel"
	"jacobi/solver"
)

// Thumbnail is a mesh averaged over cells of several points each, as many cells as a picture has room for. Each rank
// adds its own rows, and one rank merges the thumbnails of all ranks. The averages have the same bits for any division
// into ranks and any order of arrival: the points of a row are added from left to right, and the rows of a cell from
// top to bottom after all of them have arrived.
type Thumbnail struct {
	mesh     solver.Mesh
	hx, hy   float64 // spacings
	scale    scale
	lines    []line  // from top to bottom
	min, max float64 // of all finite values; +Inf and -Inf if there are none
}

// line is one row of cells. Both fields are nil until the first row is added.
type line struct {
	sums    []float64         // over all points of each cell, once all rows are added
	waiting map[int][]float64 // until then: by row of the mesh, the sums over its points in each cell
}

// NewThumbnail returns an empty thumbnail of mesh m with the spacings hx and hy.
func NewThumbnail(m solver.Mesh, hx, hy float64) *Thumbnail {
	t := &Thumbnail{mesh: m, hx: hx, hy: hy, min: math.Inf(1), max: math.Inf(-1)}
	t.scale = newScale(t.grid())
	t.lines = make([]line, t.scale.y.cells(m.NY))
	return t
}

func (t *Thumbnail) grid() grid { return grid{t.mesh.NX, t.mesh.NY, t.hx, t.hy} }

// AddRows adds dense rows [lo, lo + len(rows)/RowBytes) of the mesh. Each row may be added only once.
func (t *Thumbnail) AddRows(lo int, rows []byte) error {
	size := t.mesh.RowBytes()
	if n := len(rows) / size; len(rows)%size != 0 || lo < 0 || lo+n > t.mesh.NY {
		return fmt.Errorf("thumbnail: %d bytes at row %d are no rows of a mesh of %d x %d %v", len(rows), lo, t.mesh.NX,
			t.mesh.NY, t.mesh.DType)
	}
	// Blocks of rows, one for each core. The least and the largest values of the blocks are taken in order, so that of
	// zeros of both signs the first one counts.
	n := len(rows) / size
	sums, blocks := make([][]float64, n), make([]block, min(n, runtime.GOMAXPROCS(0)))
	err := parallel.Each(len(blocks), func(i int) error {
		b := block{min: math.Inf(1), max: math.Inf(-1)}
		b.values = make([]float64, max(1, sumColumns/t.scale.x.points)*t.scale.x.points)
		for r := n * i / len(blocks); r < n*(i+1)/len(blocks); r++ {
			sums[r] = b.sumRow(t.mesh, t.scale.x, rows[r*size:][:size])
		}
		blocks[i] = b
		return nil
	})
	for _, b := range blocks {
		if b.min < t.min {
			t.min = b.min
		}
		if b.max > t.max {
			t.max = b.max
		}
	}
	for r := 0; r < n && err == nil; r++ {
		err = t.add(lo+r, sums[r])
	}
	return err
}

// block is some rows that one core sums.
type block struct {
	min, max float64   // of all finite values; +Inf and -Inf if there are none
	values   []float64 // whole cells, which stay in the L1 cache
}

// sumRow returns the sum of a row of a mesh over each cell, and extends b.min and b.max to its finite values.
func (b *block) sumRow(m solver.Mesh, x axis, row []byte) []float64 {
	sums, size := make([]float64, x.cells(m.NX)), m.DType.Size()
	lo, hi := b.min, b.max
	for first := 0; first < m.NX; first += len(b.values) {
		part := b.values[:min(len(b.values), m.NX-first)]
		m.DType.Decode(part, row[first*size:])
		for c := first / x.points; len(part) > 0; c++ {
			cell := part[:min(x.points, len(part))]
			part = part[len(cell):]
			var sum float64
			for _, v := range cell {
				sum += v
				if v < lo && v >= -math.MaxFloat64 {
					lo = v
				}
				if v > hi && v <= math.MaxFloat64 {
					hi = v
				}
			}
			sums[c] = sum
		}
	}
	b.min, b.max = lo, hi
	return sums
}

// sumColumns is about the number of columns that sumRow decodes at a time.
const sumColumns = 1024

// lineRows returns the rows of the mesh that line i averages.
func (t *Thumbnail) lineRows(i int) solver.Stripe {
	p := t.scale.y.points
	return solver.Stripe{Lo: i * p, Hi: min((i+1)*p, t.mesh.NY)}
}

// add adds row iy with its sums over each cell, and keeps sums.
func (t *Thumbnail) add(iy int, sums []float64) error {
	i := iy / t.scale.y.points
	l, rows := &t.lines[i], t.lineRows(i)
	if _, ok := l.waiting[iy]; ok || l.sums != nil {
		return fmt.Errorf("thumbnail: row %d twice", iy)
	}
	if l.waiting == nil {
		l.waiting = map[int][]float64{}
	}
	l.waiting[iy] = sums
	if len(l.waiting) < rows.Rows() {
		return nil
	}
	total := l.waiting[rows.Lo]
	for y := rows.Lo + 1; y < rows.Hi; y++ {
		for c, v := range l.waiting[y] {
			total[c] += v
		}
	}
	*l = line{sums: total}
	return nil
}

// rounding returns the relative difference below which two values of the field differ only by rounding.
func rounding(d solver.DType) float64 {
	if d == solver.Float32 {
		return 0x1p-18
	}
	return 0x1p-47
}

// cells returns the averages, line by line. It fails if rows are missing.
func (t *Thumbnail) cells() ([][]float64, error) {
	cells := make([][]float64, len(t.lines))
	return cells, parallel.Each(len(cells), func(i int) error {
		l, rows := t.lines[i], t.lineRows(i)
		if l.sums == nil {
			return fmt.Errorf("thumbnail: %d of rows %v are missing", rows.Rows()-len(l.waiting), rows)
		}
		cells[i] = make([]float64, len(l.sums))
		for c, sum := range l.sums {
			first := c * t.scale.x.points
			columns := min(first+t.scale.x.points, t.mesh.NX) - first
			cells[i][c] = sum / float64(columns*rows.Rows())
		}
		return nil
	})
}

// A thumbnail travels as min and max (float64) and records of [row or line (8 bytes), kind (1 byte), sums (float64
// each)], little-endian. The rest of it is the same on all ranks.
const (
	recordHeader = 8 + 1

	kindLine = 0 // the sums of a complete line
	kindRow  = 1 // the sums of one row of the mesh in an incomplete line
)

// encode encodes the rows of the thumbnail. A complete line takes 8 bytes per cell, and so does each row of an
// incomplete one.
func (t *Thumbnail) encode() (b []byte) {
	record := func(number int, kind byte, sums []float64) {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(number)), kind)
		b = appendFloats(b, sums...)
	}
	b = appendFloats(b, t.min, t.max)
	for i, l := range t.lines {
		if l.sums != nil {
			record(i, kindLine, l.sums)
		}
		for _, iy := range slices.Sorted(maps.Keys(l.waiting)) {
			record(iy, kindRow, l.waiting[iy])
		}
	}
	return b
}

func appendFloats(b []byte, values ...float64) []byte {
	b = append(b, make([]byte, 8*len(values))...)
	solver.Float64.Encode(b[len(b)-8*len(values):], values)
	return b
}

// merge adds the rows that another rank has encoded.
func (t *Thumbnail) merge(b []byte) error {
	record := recordHeader + 8*t.scale.x.cells(t.mesh.NX)
	if len(b) < 16 || (len(b)-16)%record != 0 {
		return errors.New("thumbnail: malformed bytes")
	}
	var ends [2]float64
	solver.Float64.Decode(ends[:], b)
	t.min, t.max = min(t.min, ends[0]), max(t.max, ends[1])
	for b = b[16:]; len(b) > 0; b = b[record:] {
		number, kind, sums := binary.LittleEndian.Uint64(b), b[8], make([]float64, t.scale.x.cells(t.mesh.NX))
		solver.Float64.Decode(sums, b[recordHeader:])
		switch {
		case kind == kindRow && number < uint64(t.mesh.NY):
			if err := t.add(int(number), sums); err != nil {
				return err
			}
		case kind == kindLine && number < uint64(len(t.lines)):
			l := &t.lines[number]
			if l.sums != nil || l.waiting != nil {
				return fmt.Errorf("thumbnail: some of rows %v twice", t.lineRows(int(number)))
			}
			l.sums = sums
		default:
			return fmt.Errorf("thumbnail: record %d of kind %d", number, kind)
		}
	}
	return nil
}

// GatherFunc hands the data of all ranks to rank 0, by rank, in messages of a name. Other ranks get nil.
type GatherFunc func(ctx context.Context, name string, data []byte) ([][]byte, error)

// MergeAll adds the pictures of all ranks; t is that of the given one. It returns the whole picture on rank 0, and nil
// elsewhere.
func (t *Thumbnail) MergeAll(ctx context.Context, gather GatherFunc, name string, rank int) (*Thumbnail, error) {
	var data []byte
	if rank > 0 { // rank 0 has its own
		data = t.encode()
	}
	parts, err := gather(ctx, name, data)
	if err != nil || parts == nil {
		return nil, err
	}
	for rank, part := range parts[1:] {
		if err := t.merge(part); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank+1, err)
		}
	}
	return t, nil
}
