package problem

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// cellFile returns an array of rows of cells.
func cellFile(t testing.TB, rows ...[]float64) string {
	t.Helper()
	b := npyBytes(1, "<f8", "False", fmt.Sprintf("(%d, %d)", len(rows), len(rows[0])), 0, solver.Float64)
	for _, row := range rows {
		for _, v := range row {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return writeFile(t, "cells.npy", b)
}

// The edges of cells lie on the lines of the mesh: the face between two points has the mean of the coefficients of the
// two cells beside it, and the square of a point a quarter of each of the four around it.
func TestCells(t *testing.T) {
	a := [][]float64{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}
	file := cellFile(t, a...)
	p := open(t, config(5, 4, "float64", configs.Problem{Coefficient: file, Source: file, Screening: file}))
	if err := p.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
	close := func(got, want float64) bool { return math.Abs(got-want) < 1e-9*want }
	for iy := 1; iy < 3; iy++ {
		st, err := p.take(0).stencil(iy)
		if err != nil {
			t.Fatal(err)
		}
		for ix := 1; ix < 4; ix++ {
			nw, ne, sw, se := a[iy-1][ix-1], a[iy-1][ix], a[iy][ix-1], a[iy][ix]
			mean := (nw + ne + sw + se) / 4
			if !close(st.east[ix], (ne+se)/2) || !close(st.east[ix-1], (nw+sw)/2) || !close(st.south[ix], (sw+se)/2) ||
				!close(st.above.south[ix], (nw+ne)/2) {
				t.Errorf("point %d, %d has faces of %v, %v, %v and %v", iy, ix, st.east[ix], st.east[ix-1],
					st.south[ix], st.above.south[ix])
			}
			if f, k2 := st.b[ix]*st.diagonal[ix], st.hold[ix]*st.diagonal[ix]; !close(k2, mean) || ix > 1 && ix < 3 &&
				iy > 1 && !close(f, mean) {
				t.Errorf("point %d, %d has a source of %v and a screening of %v, want %v", iy, ix, f, k2, mean)
			}
		}
	}
}

// Faces and squares of cells are what they are of other areas, which takes more time, at all kinds of sides.
func TestCellsAreAreas(t *testing.T) {
	const periodic = "periodic"
	for _, c := range []configs.Problem{{}, {Left: periodic, Right: periodic}, {Top: periodic, Bottom: periodic},
		{Left: "neumann(1)", Bottom: "neumann(2)", Right: "robin(1, 2)"}, {Fixed: "hypot(x - 0.4, y - 0.6) < 0.2"}} {
		nx, ny := 8, 7
		rows := make([][]float64, ny-1)
		if c.Top == periodic {
			rows = rows[1:]
		}
		for y := range rows {
			rows[y] = make([]float64, nx-1)
			if c.Left == periodic {
				rows[y] = rows[y][1:]
			}
			for x := range rows[y] {
				rows[y][x] = float64((x*5+y*3)%11) + 0.5*float64(x) + 1
			}
		}
		c.Coefficient = cellFile(t, rows...)
		c.Source, c.Screening = c.Coefficient, c.Coefficient
		p, slow := open(t, config(nx, ny, "float64", c)), open(t, config(nx, ny, "float64", c))
		for _, n := range []*node{&slow.coefficient.node, &slow.density.node, &slow.absorption.node} {
			n.drawn = nil
		}
		if (cellsOf(p.density.node) == nil) != (c.Fixed != "") || cellsOf(p.coefficient.node) == nil {
			t.Errorf("%+v: the cells are not found", c)
		}
		one, other := make([]byte, p.mesh.RowBytes()), make([]byte, p.mesh.RowBytes())
		got, want := make([]float64, nx), make([]float64, nx)
		for iy := range ny {
			for k := solver.West; k <= solver.Source; k++ {
				if err := p.ValueRow(iy, k, one); err != nil {
					t.Fatal(err)
				}
				if err := slow.ValueRow(iy, k, other); err != nil {
					t.Fatal(err)
				}
				p.mesh.DType.Decode(got, one)
				p.mesh.DType.Decode(want, other)
				for ix := range got {
					if math.Abs(got[ix]-want[ix]) > 1e-9*math.Abs(want[ix]) {
						t.Errorf("%+v: value %v of point %d, %d is %v, want %v", c, k, iy, ix, got[ix], want[ix])
					}
				}
			}
		}
	}
}

// An array of fixed cells is what a picture of as many pixels is, in both orders, also between periodic sides.
func TestFixedCells(t *testing.T) {
	const periodic = "periodic"
	for _, c := range []configs.Problem{{}, {Left: periodic, Right: periodic}, {Top: periodic, Bottom: periodic}} {
		nx, ny := 7, 6
		if c.Left == periodic {
			nx++
		}
		if c.Top == periodic {
			ny++
		}
		pixels, cells, turned := make([][]byte, 5), make([]byte, 30), make([]byte, 30)
		for y := range pixels {
			pixels[y] = make([]byte, 6)
			for x := range pixels[y] {
				fixed := byte((x*x + 3*y) % 7 / 6)
				pixels[y][x], cells[y*6+x], turned[x*5+y] = 255-255*fixed, fixed, fixed
			}
		}
		c.Fixed = pngFile(t, gray(pixels...))
		want := open(t, config(nx, ny, "float64", c))
		for order, data := range map[string][]byte{"False": cells, "True": turned} {
			c.Fixed = boolFile(t, order, "(5, 6)", data)
			p := open(t, config(nx, ny, "float64", c))
			if err := p.Check(context.Background()); err != nil {
				t.Error(err)
			}
			if got, want := marks(t, p), marks(t, want); got != want || !p.Weighted() {
				t.Errorf("%+v:\n%s, want\n%s", c, got, want)
			}
			for iy := range ny {
				equalRows(t, p, want, iy)
			}
		}
	}
}

// equalRows fails the test unless two problems have the same weights and sources in a row.
func equalRows(t *testing.T, p, want *Problem, iy int) {
	t.Helper()
	one, other := make([]byte, p.mesh.RowBytes()), make([]byte, p.mesh.RowBytes())
	for k := solver.West; k <= solver.Source; k++ {
		if err := p.ValueRow(iy, k, one); err != nil {
			t.Fatal(err)
		}
		if err := want.ValueRow(iy, k, other); err != nil {
			t.Fatal(err)
		}
		if string(one) != string(other) {
			t.Errorf("row %d: values %v differ", iy, k)
		}
	}
}

func TestBadCells(t *testing.T) {
	good := cellFile(t, []float64{1, 2}, []float64{3, 4})
	for _, c := range []struct {
		nx, ny int
		p      configs.Problem
		want   string
	}{
		{4, 4, configs.Problem{Source: good}, "problem.source %q: shape (2, 2); it must be (4, 4) for points or " +
			"(3, 3) for cells between them (grid.ny, grid.nx)"},
		{4, 3, configs.Problem{Initial: good},
			"problem.initial %q: shape (2, 2); it must be (3, 4) (grid.ny, grid.nx)"},
		{3, 3, configs.Problem{Coefficient: cellFile(t, []float64{1, 2}, []float64{-3, 4})},
			"problem.coefficient %q at row 1, column 0 (x = 0, y = 0.5): -3; it must be 0, where there is no " +
				"material, or 1e-60 to 1e+60"},
		{3, 3, configs.Problem{Source: cellFile(t, []float64{1, math.NaN()}, []float64{3, 4})},
			"problem.source %q at row 1, column 1 (x = 0.5, y = 0.5): NaN; values must be finite"},
		{3, 3, configs.Problem{Fixed: boolFile(t, "False", "(2, 2)", []byte{0, 1, 2, 0})},
			"problem.fixed %q: row 1: column 0: 2 is no truth value, which is 0, 1 or 255"},
		{3, 3, configs.Problem{Source: writeFile(t, "a.npy", npyBytes(1, "<f8", "False", "(2, 2)", 3, solver.Float64))},
			"problem.source %q: truncated: 94 bytes of 102"},
		{5794, 5794, configs.Problem{Source: writeFile(t, "a.npy", npyBytes(1, "<f8", "False", "(5793, 5793)", 0,
			solver.Float64))}, "problem.source %q: 5793 x 5793 cells take 256 MiB; at most 256 MiB are allowed, " +
			"which is 5792 x 5792 cells"},
	} {
		p, err := New(t.Context(), config(c.nx, c.ny, "float64", c.p))
		if err == nil {
			err = p.Check(t.Context())
		}
		want := fmt.Sprintf(c.want, c.p.Source+c.p.Initial+c.p.Coefficient+c.p.Fixed)
		if fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// The contents of cells are verified as those of other files are.
func TestContentsOfCells(t *testing.T) {
	file := cellFile(t, []float64{1, 2}, []float64{3, 4})
	c := config(3, 3, "float64", configs.Problem{Source: file, Fixed: boolFile(t, "False", "(2, 2)", make([]byte, 4))})
	planned, err := open(t, c).Contents(t.Context())
	if err != nil || len(planned) != 2 {
		t.Fatalf("contents %v, %v", planned, err)
	}
	again, err := open(t, c).Contents(t.Context())
	if fmt.Sprint(again) != fmt.Sprint(planned) || err != nil {
		t.Errorf("%v again, %v; want %v", again, err, planned)
	}
	data, err := os.ReadFile(cellFile(t, []float64{1, 2}, []float64{3, 5}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf("problem.source %q", file)
	if other, err := open(t, c).Contents(t.Context()); other[key] == planned[key] || other[key] == "" || err != nil {
		t.Errorf("contents %v, %v; want others than %v", other, err, planned)
	}
	if p := open(t, c); p.PictureBytes() != 4*8+4 {
		t.Errorf("%d bytes of cells", p.PictureBytes())
	}
}
