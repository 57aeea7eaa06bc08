package output

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/solver"
)

// valueAt encodes its coordinates, so that a value in the wrong place is detected.
func valueAt(ix, iy int) float64 { return float64(iy) + float64(ix)/1024 }

// testRow returns the dense row of f at row y.
func testRow(m solver.Mesh, iy int, f func(ix, iy int) float64) []byte {
	values, b := make([]float64, m.NX), make([]byte, m.RowBytes())
	for ix := range values {
		values[ix] = f(ix, iy)
	}
	m.DType.Encode(b, values)
	return b
}

func testRows(m solver.Mesh, s solver.Stripe, f func(ix, iy int) float64) []byte {
	var b []byte
	for iy := s.Lo; iy < s.Hi; iy++ {
		b = append(b, testRow(m, iy, f)...)
	}
	return b
}

// memory is one rank's field: f on the rows of its stripe.
type memory struct {
	mesh   solver.Mesh
	stripe solver.Stripe
	f      func(ix, iy int) float64
}

func (r memory) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	if s.Lo < r.stripe.Lo || s.Hi > r.stripe.Hi || len(dst) != s.Rows()*r.mesh.RowBytes() {
		return fmt.Errorf("rows %v in %d bytes of stripe %v", s, len(dst), r.stripe)
	}
	copy(dst, testRows(r.mesh, s, r.f))
	return nil
}

// initial is an initial field.
type initial struct {
	mesh solver.Mesh
	f    func(ix, iy int) float64
}

func (r initial) Row(iy int, dst []byte) error {
	copy(dst, testRow(r.mesh, iy, r.f))
	return nil
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("files in the output directory: %q, want %q", got, want)
	}
}

// outputs names the files that tests write.
func outputs(dir string) configs.Output {
	return configs.Output{Dir: dir, Field: "field.npy", Picture: "field.png", History: "history.csv",
		Report: "report.json"}
}

// hold holds dir for the run called run.
func hold(t *testing.T, o configs.Output) *Held {
	t.Helper()
	h, notes, err := Hold(o, "run")
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	return h
}

func release(t *testing.T, h *Held) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// writerIn returns a writer of rows to the file of t.
func writerIn(t *testing.T, h *Held, k Ticket) *FieldWriter {
	t.Helper()
	f, _, err := h.Open(k.File)
	must(t, err)
	return NewFieldWriter(f, k)
}

// writeField writes the whole mesh with this many concurrent ranks and puts the file in place.
func writeField(t *testing.T, dir string, m solver.Mesh, ranks int) {
	t.Helper()
	stripes, err := solver.Partition(m.Interior(), ranks, 1)
	must(t, err)
	h := hold(t, outputs(dir))
	defer release(t, h)
	f, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	must(t, err)
	fault := make([]error, ranks)
	var wg sync.WaitGroup
	for i, s := range stripes {
		w := writerIn(t, h, f.Tickets[0])
		wg.Go(func() {
			v := View{Mesh: m, Stripe: s, Rows: memory{m, s, valueAt},
				Initial: initial{m, func(ix, iy int) float64 { return -valueAt(ix, iy) }}}
			fault[i] = errors.Join(v.Each(t.Context(), w.WriteRows), w.Close())
		})
	}
	wg.Wait()
	must(t, errors.Join(errors.Join(fault...), f.Finish(), h.Commit([]string{"field.npy"})))
}

func TestNpyHeaderIsNumpys(t *testing.T) {
	// The header as numpy.save writes it (format 1.0): 10 bytes, then a dict padded with spaces to a multiple of 64.
	for _, c := range []struct {
		m    solver.Mesh
		dict string
	}{
		{solver.Mesh{NX: 4, NY: 3, DType: solver.Float32},
			"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
		{solver.Mesh{NX: 16384, NY: 12345, DType: solver.Float64},
			"{'descr': '<f8', 'fortran_order': False, 'shape': (12345, 16384), }"},
	} {
		want := "\x93NUMPY\x01\x00\x76\x00" + c.dict + strings.Repeat(" ", 117-len(c.dict)) + "\n"
		if got := string(npyHead(c.m)); got != want {
			t.Errorf("header of %+v\n got %q\nwant %q", c.m, got, want)
		}
	}
}

// meshWalls are walls of all kinds.
var meshWalls = []solver.Walls{
	{}, solver.WrapRows(true), {Top: solver.Neumann}, {Left: solver.Neumann, Bottom: solver.Neumann},
	{Left: solver.Neumann, Top: solver.Periodic, Bottom: solver.Periodic},
	{Left: solver.Periodic, Right: solver.Periodic, Top: solver.Neumann, Bottom: solver.Neumann},
	{Left: solver.Periodic, Right: solver.Periodic, Top: solver.Periodic, Bottom: solver.Periodic},
}

func TestFieldBytes(t *testing.T) {
	const header = 128
	for _, walls := range meshWalls {
		for _, d := range []solver.DType{solver.Float32, solver.Float64} {
			for _, ranks := range []int{1, 2, 3} {
				m := solver.Mesh{NX: 5, NY: 26, DType: d, Walls: walls}
				dir := t.TempDir()
				writeField(t, dir, m, ranks)
				wantFiles(t, dir, "field.npy")
				got, err := os.ReadFile(filepath.Join(dir, "field.npy"))
				must(t, err)
				// Rows 0 and NY-1 of fixed walls are the negative values of the initial field. Periodic ones are copies
				// of rows NY-2 and 1 except in the columns of fixed walls.
				interior := m.Interior()
				want := testRows(m, solver.Stripe{Lo: 0, Hi: m.NY}, func(ix, iy int) float64 {
					row, _ := m.Canonical(iy)
					fixed := ix == 0 && walls.Left == solver.Dirichlet ||
						ix == m.NX-1 && walls.Right == solver.Dirichlet
					switch {
					case iy >= interior.Lo && iy < interior.Hi:
						return valueAt(ix, iy)
					case row != iy && !fixed:
						return valueAt(ix, row)
					}
					return -valueAt(ix, iy)
				})
				if len(got) != header+len(want) || !bytes.Equal(got[header:], want) {
					t.Errorf("walls %v, %v, %d ranks: the file's rows differ", walls, d, ranks)
				}
			}
		}
	}
}

func TestWriteRowsRefusesWhatIsNoRow(t *testing.T) {
	m := solver.Mesh{NX: 5, NY: 8, DType: solver.Float64}
	h := hold(t, outputs(t.TempDir()))
	defer release(t, h)
	f, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	must(t, err)
	w := writerIn(t, h, f.Tickets[0])
	defer w.Close()
	for _, c := range []struct{ lo, bytes int }{{-1, 40}, {8, 40}, {7, 80}, {0, 39}} {
		if err := w.WriteRows(c.lo, make([]byte, c.bytes)); err == nil {
			t.Errorf("%d bytes at row %d were written", c.bytes, c.lo)
		}
	}
}

func TestFieldThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED: a full disk; mounting a small one needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	m := solver.Mesh{NX: 512, NY: 1024, DType: solver.Float32}
	h := hold(t, outputs(dir))
	_, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	release(t, h)
	const want = `not enough space: 2.0 MiB (2097280 bytes) needed, 1004 KiB (1028096 bytes) available`
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %q does not say %q of %s", err, want, dir)
	}
	wantFiles(t, dir)
	if err := checkSpace(dir, 2<<20); !errors.Is(err, ErrNoSpace) {
		t.Errorf("checkSpace: %v", err)
	}
	if err := checkSpace(dir, 1<<20); err != nil {
		t.Errorf("checkSpace of what there is: %v", err)
	}
	writeField(t, dir, solver.Mesh{NX: 16, NY: 16, DType: solver.Float32}, 2)
	wantFiles(t, dir, "field.npy")
}

func TestTooLargeForAFile(t *testing.T) {
	huge := solver.Mesh{NX: 1 << 31, NY: 1 << 31, DType: solver.Float64}
	if _, err := FieldBytes(configs.Output{Field: "a.npy"}, huge); err == nil {
		t.Error("2^65 bytes fit")
	}
}

// The head of a .vti file has one length for all meshes and spacings, so that sizes are known before the spacings.
func TestHeadOfVTI(t *testing.T) {
	m := solver.Mesh{NX: 5, NY: 3, DType: solver.Float32}
	got := FormatOf("field.VTI", m, 0.25, 0.5)
	const want = `<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="0 4 0 2 0 0" Origin="0 0 0" Spacing="0.25 0.5 1">
    <Piece Extent="0 4 0 2 0 0">
      <PointData Scalars="u">
        <DataArray type="Float32" Name="u" format="appended" offset="0"/>
      </PointData>
    </Piece>
  </ImageData>
`
	const end = "<AppendedData encoding=\"raw\">\n_\x3c\x00\x00\x00\x00\x00\x00\x00"
	if head := string(got.Head); len(head) != 1024 || !strings.HasPrefix(head, want) || !strings.HasSuffix(head, end) ||
		strings.TrimSpace(head[len(want):len(head)-len(end)]) != "" {
		t.Errorf("head of %d bytes %q", len(head), head)
	}
	if tail := string(got.Tail); tail != "\n</AppendedData>\n</VTKFile>\n" {
		t.Errorf("tail %q", tail)
	}
	large := FormatOf("a.vti", solver.Mesh{NX: math.MaxInt32, NY: math.MaxInt32, DType: solver.Float64},
		math.SmallestNonzeroFloat64, math.MaxFloat64)
	if len(large.Head) != 1024 {
		t.Errorf("the head for a large mesh has %d bytes, want 1024", len(large.Head))
	}
}

// Values become the nearest float32. Those beyond it become infinite, and the first one is an error.
func TestFloat32(t *testing.T) {
	var rows []byte
	for _, v := range []float64{1, 0.1, -1e-50, math.Inf(1), 1e39, -1e40} {
		rows = binary.LittleEndian.AppendUint64(rows, math.Float64bits(v))
	}
	b, err := Float32(rows[:0], slices.Clone(rows))
	if err == nil || err.Error() != "1e+39 is beyond float32" {
		t.Errorf("error %v", err)
	}
	inf := math.Float32bits(float32(math.Inf(1)))
	want := []uint32{0x3f800000, 0x3dcccccd, 1 << 31, inf, inf, inf | 1<<31}
	for i, w := range want {
		if got := binary.LittleEndian.Uint32(b[4*i:]); got != w || len(b) != 4*len(want) {
			t.Errorf("value %d of %d bytes: %08x, want %08x", i, len(b), got, w)
		}
	}
	if _, err := Float32(nil, rows[:0]); err != nil {
		t.Error(err)
	}
}

// chunkRows yields rows whose bytes are their numbers, and tells of each copy.
type chunkRows struct {
	mesh   solver.Mesh
	copied func(s solver.Stripe) error
}

func (r chunkRows) CopyRows(_ context.Context, s solver.Stripe, dst []byte) error {
	for iy := s.Lo; iy < s.Hi; iy++ {
		copy(dst[(iy-s.Lo)*r.mesh.RowBytes():], bytes.Repeat([]byte{byte(iy)}, r.mesh.RowBytes()))
	}
	return r.copied(s)
}

// halfChunk is a mesh with chunks of two rows: the given number of whole chunks of interior rows, and one of half the
// size.
func halfChunk(whole int) (solver.Mesh, solver.Stripe) {
	m := solver.Mesh{NX: leastChunk / 8, NY: 2*whole + 3, DType: solver.Float32}
	return m, m.Interior()
}

// Chunks grow with the rows and with the cores.
func TestRowsOfChunk(t *testing.T) {
	m := solver.Mesh{NX: 1 << 10, DType: solver.Float64} // 128 rows have a mebibyte
	for _, c := range []struct{ cores, rows, want int }{
		{1, 100, 100}, {1, 1 << 10, 256}, {1, 6 << 10, 384}, {1, 1 << 20, 512}, {12, 1 << 20, 768}, {64, 1 << 20, 1024},
	} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.cores))
		if got := rowsOfChunk(m, c.rows); got != c.want {
			t.Errorf("%d cores, %d rows: %d in a chunk, want %d", c.cores, c.rows, got, c.want)
		}
	}
	if got := rowsOfChunk(solver.Mesh{NX: 1 << 24, DType: solver.Float64}, 5); got != 1 {
		t.Errorf("%d long rows in a chunk, want 1", got)
	}
}

// Chunks are copied ahead of the uses, as far as there are buffers. Each use gets every row whole, in order and once,
// though another one lags behind.
func TestChunksAreCopiedAhead(t *testing.T) {
	m, s := halfChunk(chunksAhead + 2)
	copies := make(chan solver.Stripe, s.Rows())
	rows := chunkRows{m, func(s solver.Stripe) error { copies <- s; return nil }}
	var seen [2][]int
	use := func(u int) Use {
		return func(lo int, data []byte) error {
			for i := range len(data) / m.RowBytes() {
				want := bytes.Repeat([]byte{byte(lo + i)}, m.RowBytes())
				if !bytes.Equal(data[i*len(want):][:len(want)], want) {
					return fmt.Errorf("use %d: row %d has other values", u, lo+i)
				}
				seen[u] = append(seen[u], lo+i)
			}
			return nil
		}
	}
	slow := use(1)
	err := eachChunk(t.Context(), m, s, rows, use(0), func(lo int, data []byte) error {
		if lo == s.Lo {
			for range chunksAhead { // without copies ahead this waits for ever
				<-copies
			}
			if len(copies) > 0 {
				t.Error("a buffer was copied to while it was in use")
			}
		}
		return slow(lo, data)
	})
	var want []int
	for iy := s.Lo; iy < s.Hi; iy++ {
		want = append(want, iy)
	}
	if err != nil || !slices.Equal(seen[0], want) || !slices.Equal(seen[1], want) {
		t.Errorf("rows %v, %v; want %v", seen, err, want)
	}
}

// An error ends the copies and the use that has it. Errors of uses come before those of copies, which are ahead.
func TestChunksEndWithAnError(t *testing.T) {
	m, s := halfChunk(2)
	broken, full := errors.New("broken"), errors.New("full")
	for name, c := range map[string]struct {
		copyAt, useAt int // the row of the chunk that fails
		want          error
		uses          string
	}{
		"copy":                    {3, -1, broken, "[1]"},
		"copy after a failed use": {3, 1, full, "[1]"},
		"last use":                {-1, 5, full, "[1 3 5]"},
		"context":                 {-1, -1, context.Canceled, "[1]"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		rows := chunkRows{m, func(s solver.Stripe) error {
			if s.Lo == c.copyAt {
				return broken
			}
			if c.want == context.Canceled {
				cancel()
			}
			return nil
		}}
		var uses []int
		err := eachChunk(ctx, m, s, rows, func(lo int, _ []byte) error {
			uses = append(uses, lo)
			if lo == c.useAt {
				return full
			}
			return nil
		}, func(int, []byte) error { return nil })
		if !errors.Is(err, c.want) || fmt.Sprint(uses) != c.uses {
			t.Errorf("%s: chunks %v, error %v; want %s, %v", name, uses, err, c.uses, c.want)
		}
		cancel()
	}
}
