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
	"strings"
	"sync"
	"testing"

	"github.com/sbinet/npyio"
	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/solver"
)

// valueAt encodes its coordinates, so that a value in the wrong place is detected.
func valueAt(ix, iy int) float64 { return float64(iy) + float64(ix)/1024 }

// testRow returns the dense row of f at row y.
func testRow(m solver.Mesh, iy int, f func(ix, iy int) float64) []byte {
	var b []byte
	for ix := range m.NX {
		if m.DType == solver.Float32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f(ix, iy))))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f(ix, iy)))
		}
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return NewFieldWriter(f, k)
}

// writeField writes the whole mesh with this many concurrent ranks and puts the file in place.
func writeField(t *testing.T, dir string, m solver.Mesh, ranks int) {
	t.Helper()
	stripes, err := solver.Partition(m.Interior(), ranks, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := hold(t, outputs(dir))
	defer release(t, h)
	f, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	fault := make([]error, ranks)
	var wg sync.WaitGroup
	for i, s := range stripes {
		w := writerIn(t, h, f.Ticket())
		wg.Go(func() {
			v := View{Mesh: m, Stripe: s, Rows: memory{m, s, valueAt},
				Initial: initial{m, func(ix, iy int) float64 { return -valueAt(ix, iy) }}}
			fault[i] = errors.Join(v.Each(t.Context(), w.WriteRows), w.Close())
		})
	}
	wg.Wait()
	if err := errors.Join(errors.Join(fault...), f.Finish(), h.Commit([]string{"field.npy"})); err != nil {
		t.Fatal(err)
	}
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
				if err != nil {
					t.Fatal(err)
				}
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

func TestFieldReadsWithNpyio(t *testing.T) {
	m := solver.Mesh{NX: 700, NY: 2000, DType: solver.Float32} // rows 1 to 1999 take two chunks
	dir := t.TempDir()
	writeField(t, dir, m, 1)
	f, err := os.Open(filepath.Join(dir, "field.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := npyio.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Header.Descr; d.Type != "<f4" || d.Fortran || fmt.Sprint(d.Shape) != "[2000 700]" {
		t.Fatalf("npyio reads the header as %+v", d)
	}
	var values []float32
	if err := r.Read(&values); err != nil {
		t.Fatal(err)
	}
	for iy := 1; iy < m.NY-1; iy++ {
		for ix := range m.NX {
			if got, want := values[iy*m.NX+ix], float32(valueAt(ix, iy)); got != want {
				t.Fatalf("value at row %d, column %d: %v, want %v", iy, ix, got, want)
			}
		}
	}
}

func TestFieldStaysUntilTheNewOneIsComplete(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "field.npy")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := solver.Mesh{NX: 5, NY: 8, DType: solver.Float64}
	h := hold(t, outputs(dir))
	f, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	w := writerIn(t, h, f.Ticket())
	if err := w.WriteRows(3, testRow(m, 3, valueAt)); err != nil {
		t.Fatal(err)
	}
	wantText(t, dir, "field.npy", "old")
	if err := f.Abort(); err != nil {
		t.Error(err)
	}
	if err := f.Finish(); err == nil {
		t.Error("an aborted file can be finished")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	release(t, h)
	wantText(t, dir, "field.npy", "old")
	wantFiles(t, dir, "field.npy")

	writeField(t, dir, m, 1)
	if fi, err := os.Stat(path); err != nil || fi.Size() != 128+5*8*8 {
		t.Errorf("the new file: %v, %v", fi, err)
	}
}

func TestWriteRowsRefusesWhatIsNoRow(t *testing.T) {
	m := solver.Mesh{NX: 5, NY: 8, DType: solver.Float64}
	h := hold(t, outputs(t.TempDir()))
	defer release(t, h)
	f, err := CreateField(h, "field.npy", m, FormatOf("field.npy", m, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	w := writerIn(t, h, f.Ticket())
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

func TestEachStopsWithItsContext(t *testing.T) {
	m := solver.Mesh{NX: 5, NY: 8, DType: solver.Float64}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := View{Mesh: m, Stripe: solver.Stripe{Lo: 1, Hi: 7}, Rows: memory{m, m.Interior(), valueAt},
		Initial: initial{m, valueAt}}
	if err := v.Each(ctx, func(lo int, _ []byte) error {
		if lo > 0 {
			t.Errorf("row %d came", lo)
		}
		return nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestTooLargeForAFile(t *testing.T) {
	huge := solver.Mesh{NX: 1 << 31, NY: 1 << 31, DType: solver.Float64}
	if _, err := FieldBytes(configs.Output{Field: "a.npy"}, huge); err == nil {
		t.Error("2^65 bytes fit")
	}
}
