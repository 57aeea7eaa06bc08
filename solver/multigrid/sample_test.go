package multigrid_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// plates has fixed points: a vertical line at column 40, and a plate from column 66 on in rows 72 and 73. Its initial
// field is 1000 iy + ix.
type plates struct{ mesh solver.Mesh }

func (p plates) FixedRow(iy int, dst []bool) error {
	for x := range dst {
		dst[x] = x == 40 || x >= 66 && (iy == 72 || iy == 73)
	}
	return nil
}

func (p plates) Values(iy int, cols []int, dst []float64) error {
	for i, x := range cols {
		if iy < 0 || iy >= p.mesh.NY || x < 0 || x >= p.mesh.NX {
			return fmt.Errorf("no point (%d, %d)", iy, x)
		}
		dst[i] = float64(1000*iy + x)
	}
	return nil
}

// Stages have the walls of the finest mesh, interpolated, and a point for each of its fixed points, however thin
// electrodes are.
func TestStagesHaveWallsAndFixedPoints(t *testing.T) {
	mesh := solver.Mesh{NX: 131, NY: 121, DType: solver.Float64}
	p, err := multigrid.NewPlan(mesh, solver.Operator{Scale: 0.5, Blend: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	initial := plates{mesh}
	divided, agglomerated := p.Divide([]solver.Stripe{mesh.Interior()}, multigrid.AgglomeratedPoints)
	l := p.LayoutOf(divided, agglomerated, 0)
	if l.Fixed, err = p.FixedPoints(initial); err != nil {
		t.Fatal(err)
	}
	stages, err := multigrid.StagesOf(l, divided, 0, initial, multigrid.AgglomeratedPoints)
	if err != nil {
		t.Fatal(err)
	}
	var meshes [][2]int
	for _, s := range stages {
		m := s.Plan.Levels[0].Mesh
		meshes = append(meshes, [2]int{m.NX, m.NY})
	}
	if want := [][2]int{{81, 65}, {41, 33}, {21, 17}, {11, 9}, {6, 9}}; !slices.Equal(meshes, want) {
		t.Fatalf("meshes %v, want %v", meshes, want)
	}
	// Column 40 of 130 intervals is column 24.6 of 80, and row 72 of 120 row 38.4 of 64.
	line := multigrid.Columns{Lo: 25, Hi: 26}
	for y, got := range stages[0].Fixed[0] {
		want := []multigrid.Columns{line}
		if y == 38 || y == 39 {
			want = append(want, multigrid.Columns{Lo: 41, Hi: 80})
		}
		if !slices.Equal(got, want) {
			t.Errorf("row %d: fixed points %v, want %v", y, got, want)
		}
	}
	for _, c := range []struct {
		stage, y int
		want     map[int]float64 // by column; 0 elsewhere
	}{
		// Row 38 of 64 is row 71.25 of 120, and column 50 of 80 column 81.25 of 130.
		{0, 38, map[int]float64{0: 71250, 80: 71380, 25: 71040, 41: 72067, 50: 72081, 79: 72128}},
		{0, 64, map[int]float64{0: 120000, 1: 120001.625, 40: 120065, 80: 120130}},
		{4, 3, map[int]float64{0: 45000, 2: 45040, 5: 45130}},
	} {
		m := stages[c.stage].Plan.Levels[0].Mesh
		bytes, row := make([]byte, m.RowBytes()), make([]float64, m.NX)
		if err := stages[c.stage].Rows.Row(c.y, bytes); err != nil {
			t.Fatal(err)
		}
		if _, err := binary.Decode(bytes, binary.LittleEndian, row); err != nil {
			t.Fatal(err)
		}
		for x, want := range c.want {
			if row[x] != want {
				t.Errorf("stage %d, row %d, column %d: %v, want %v", c.stage, c.y, x, row[x], want)
			}
		}
	}
}
