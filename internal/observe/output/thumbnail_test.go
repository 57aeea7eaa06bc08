package output

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"jacobi/solver"
)

// thumbnailOf returns the thumbnail of f over the whole mesh.
func thumbnailOf(t *testing.T, m solver.Mesh, f func(ix, iy int) float64) *Thumbnail {
	t.Helper()
	th := NewThumbnail(m, 1, 1)
	for iy := range m.NY {
		must(t, th.AddRows(iy, testRow(m, iy, f)))
	}
	return th
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		nx, ny int
		want   scale
	}{
		{1024, 1024, scale{axis{1, 1}, axis{1, 1}}},
		{16384, 16384, scale{axis{13, 1}, axis{13, 1}}},
		{3, 3, scale{axis{1, 267}, axis{1, 267}}},
		{799, 10, scale{axis{1, 1}, axis{1, 10}}},
		{512, 256, scale{axis{1, 2}, axis{1, 2}}},
		{1280, 1281, scale{axis{2, 1}, axis{2, 1}}},
		{4096, 64, scale{axis{4, 1}, axis{1, 2}}},
		{64, 4096, scale{axis{1, 2}, axis{4, 1}}},
		{1 << 20, 1000, scale{axis{820, 1}, axis{6, 1}}},
	} {
		if got := newScale(grid{c.nx, c.ny, 1, 1}); got != c.want {
			t.Errorf("%d x %d: %+v, want %+v", c.nx, c.ny, got, c.want)
		}
	}
	for _, n := range []int{3, 4, 31, 400, 640, 641, 799, 800, 1279, 1280, 1281, 5000, 99999} {
		for _, m := range []int{3, 50, 1000, 1281, 70000} {
			s := newScale(grid{n, m, 1, 1})
			w, h := s.x.length(n), s.y.length(m)
			if long, short := max(w, h), min(w, h); long < minPixels/2 || long > maxPixels || short < long/maxAspect {
				t.Errorf("%d x %d points become %d x %d pixels", n, m, w, h)
			}
		}
	}
}

// Lengths have the same scale in both directions, whatever the spacings, up to a ratio of the sides of 8.
func TestScaleOfSpacings(t *testing.T) {
	for _, c := range []struct {
		g             grid
		width, height int
		caption       string
	}{
		{grid{1025, 129, 1. / 1024, 1. / 128}, 1025, 1032, ""},
		{grid{129, 1025, 1. / 64, 1. / 1024}, 1033, 513, ""},
		{grid{33, 33, 1, 0.137}, 825, 113, ""},
		{grid{5000, 300, 0.001, 0.01}, 1250, 750, ""},
		{grid{65, 65, 1, 1e-3}, 845, 130, "not to scale: y stretched 154 times"},
		{grid{4097, 65, 1, 1}, 1025, 130, "not to scale: y stretched 8 times"},
		{grid{33, 65, 1e-4, 1}, 132, 845, "not to scale: x stretched 3.08e+03 times"},
	} {
		s := newScale(c.g)
		w, h, caption := s.x.length(c.g.nx), s.y.length(c.g.ny), s.caption(c.g)
		if w != c.width || h != c.height || caption != c.caption {
			t.Errorf("%+v: %d x %d pixels, %q; want %d x %d, %q", c.g, w, h, caption, c.width, c.height, c.caption)
		}
	}
}

func TestThumbnailAverages(t *testing.T) {
	// cells of 3 x 3 points, the last column of cells 2 wide
	m := solver.Mesh{NX: 2561, NY: 2562, DType: solver.Float32}
	th := thumbnailOf(t, m, func(ix, iy int) float64 { return float64(ix + 4*iy) })
	cells, err := th.cells()
	must(t, err)
	if len(cells) != 854 || len(cells[0]) != 854 {
		t.Fatalf("%d x %d cells", len(cells), len(cells[0]))
	}
	for y, line := range cells {
		for x, got := range line {
			want := float64(3*x+1) + 4*float64(3*y+1)
			if x == 853 {
				want = 2559.5 + 4*float64(3*y+1)
			}
			if got != want {
				t.Fatalf("cell %d, %d: %v, want %v", x, y, got, want)
			}
		}
	}
	if th.min != 0 || th.max != 2560+4*2561 {
		t.Errorf("range %v to %v", th.min, th.max)
	}
}

func TestThumbnailDoesNotDependOnRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	// Cells of 2 x 3 points; stripes begin at multiples of 8.
	m := solver.Mesh{NX: 400, NY: 2700, DType: solver.Float64, Walls: meshWalls[5]}
	values := make([]float64, m.NX*m.NY)
	for i := range values {
		values[i] = r.NormFloat64() * math.Exp(10*r.NormFloat64())
	}
	f := func(ix, iy int) float64 { return values[iy*m.NX+ix] }
	one := thumbnailOf(t, m, f)
	want, err := one.cells()
	must(t, err)
	for _, ranks := range []int{2, 5, 300} {
		stripes, err := solver.Partition(m.Interior(), ranks, 1)
		must(t, err)
		merged := NewThumbnail(m, 1, 1)
		r.Shuffle(ranks, func(i, j int) { stripes[i], stripes[j] = stripes[j], stripes[i] })
		for _, s := range stripes {
			th := NewThumbnail(m, 1, 1)
			must(t, (View{m, s, memory{m, s, f}, initial{m, f}}).Each(t.Context(), th.AddRows))
			must(t, merged.merge(th.encode()))
		}
		got, err := merged.cells()
		must(t, err)
		if !reflect.DeepEqual(got, want) || merged.min != one.min || merged.max != one.max {
			t.Errorf("%d ranks: the thumbnail differs", ranks)
		}
	}
}

func TestThumbnailRefuses(t *testing.T) {
	m := solver.Mesh{NX: 3, NY: 3, DType: solver.Float64}
	th := thumbnailOf(t, m, valueAt)
	if err := th.AddRows(1, testRow(m, 1, valueAt)); err == nil {
		t.Error("a row twice")
	}
	if err := th.merge(th.encode()); err == nil {
		t.Error("all rows twice")
	}
	for _, c := range []struct{ lo, bytes int }{{-1, 24}, {3, 24}, {2, 48}, {0, 23}} {
		if err := NewThumbnail(m, 1, 1).AddRows(c.lo, make([]byte, c.bytes)); err == nil {
			t.Errorf("%d bytes at row %d", c.bytes, c.lo)
		}
	}
	part := NewThumbnail(m, 1, 1)
	must(t, part.AddRows(0, testRow(m, 0, valueAt)))
	if _, err := part.Draw(Caption{}); err == nil {
		t.Error("a picture of missing rows")
	}
}

func FuzzThumbnailMerge(f *testing.F) {
	m := solver.Mesh{NX: 3, NY: 3000, DType: solver.Float32}
	th := NewThumbnail(m, 1, 1)
	if err := th.AddRows(1, make([]byte, 12*10)); err != nil {
		f.Fatal(err)
	}
	b := th.encode()
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add(append(slices.Clone(b), b[16:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		th := NewThumbnail(m, 1, 1)
		if th.merge(b) != nil {
			return
		}
		if err := NewThumbnail(m, 1, 1).merge(th.encode()); err != nil {
			t.Fatalf("what was read does not read again: %v", err)
		}
	})
}
