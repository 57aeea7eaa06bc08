package leveltest

import (
	"context"
	"fmt"
	"math"

	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// measures compares the sum of the field's squares, and the largest values of levels, with what the rows of the ranks
// say.
func (r *ranks) measures(ctx context.Context) error {
	e := r.layouts[0].Magnitude + 33
	var got, want solver.Sum
	for k, d := range r.devices {
		own, err := d.Squares(ctx, e)
		if err != nil {
			return fmt.Errorf("rank %d: squares: %w", k, err)
		}
		got.Merge(own)
		rows, err := r.ownRows(ctx, k, 0, r.stripes[0][k])
		if err != nil {
			return err
		}
		addSquares(&want, rows, r.stripes[0][k], e)
		for level, s := range map[int]solver.Stripe{0: r.stripes[0][k], 1: r.layouts[k].Below()} {
			if rows, err = r.ownRows(ctx, k, level, s); err != nil {
				return err
			}
			if v, err := d.Largest(ctx, level, s); err != nil || v != largestOf(rows) {
				return fmt.Errorf("rank %d: largest value of level %d: %v (%w), want %v", k, level, v, err,
					largestOf(rows))
			}
		}
	}
	if got != want || got.Bad {
		return fmt.Errorf("sum of the squares %v, want %v", got, want)
	}
	return nil
}

// findsNaN writes NaN into the last row of level 1 that each rank owns, and looks for it.
func (r *ranks) findsNaN(ctx context.Context) error {
	const level = 1
	mesh := r.plan.Levels[level].Mesh
	for k, d := range r.devices {
		s := r.layouts[k].Below()
		row, data := make([]float64, mesh.NX), make([]byte, mesh.RowBytes())
		row[mesh.NX/2] = math.NaN()
		mesh.DType.Encode(data, row)
		err := d.SetRows(ctx, level, multigrid.Unknowns, solver.Stripe{Lo: s.Hi - 1, Hi: s.Hi}, data)
		if err != nil {
			return fmt.Errorf("rank %d: set NaN: %w", k, err)
		}
		if v, err := d.Largest(ctx, level, s); err != nil || !math.IsNaN(v) {
			return fmt.Errorf("rank %d: largest value beside NaN: %v (%w)", k, v, err)
		}
	}
	return nil
}

// ownRows returns rows of Unknowns with 0 in the columns that are copies.
func (r *ranks) ownRows(ctx context.Context, k, level int, s solver.Stripe) ([][]float64, error) {
	mesh := r.plan.Levels[level].Mesh
	data := make([]byte, s.Rows()*r.plan.RowBytes(level, multigrid.Unknowns))
	if err := r.devices[k].CopyRows(ctx, level, multigrid.Unknowns, s, data); err != nil {
		return nil, fmt.Errorf("rank %d: copy rows of level %d: %w", k, level, err)
	}
	rows, columns := make([][]float64, s.Rows()), multigrid.OwnColumns(mesh)
	for i := range rows {
		rows[i] = make([]float64, mesh.NX)
		mesh.DType.Decode(rows[i], data[i*mesh.RowBytes():])
		clear(rows[i][:columns.Lo])
		clear(rows[i][columns.Hi:])
	}
	return rows, nil
}

// addSquares adds the groups of a rank's rows.
func addSquares(sum *solver.Sum, rows [][]float64, s solver.Stripe, e solver.Magnitude) {
	at := func(y, x int) float64 {
		if y >= s.Lo && y < s.Hi && x < len(rows[0]) {
			return rows[y-s.Lo][x]
		}
		return 0
	}
	for top := s.Lo / solver.GroupRows * solver.GroupRows; top < s.Hi; top += solver.GroupRows {
		for x := 0; x < len(rows[0]); x += 4 {
			term := 0.0
			for y := top; y < top+solver.GroupRows; y++ {
				a, b, c, d := at(y, x), at(y, x+1), at(y, x+2), at(y, x+3)
				term += math.FMA(b, b, a*a) + math.FMA(d, d, c*c)
			}
			sum.Add(term, e)
		}
	}
}

func largestOf(rows [][]float64) (largest float64) {
	for _, row := range rows {
		for _, v := range row {
			largest = max(largest, math.Abs(v))
		}
	}
	return largest
}
