package backendtest

import (
	"math/rand/v2"

	"jacobi/solver"
)

// OperatorCases returns the cases of the plain average and of the general operator on all walls: each pair of walls of
// columns with each pair of walls of rows, each operator and both types. Widths, heights, ranks and depths vary from
// case to case, so that walls and fixed points fall on each place of a vector, a block and a group.
func OperatorCases() []Case {
	all := Update{General: true, Source: true, Fixed: true}
	return append(wallCases(Update{}, Update{Fixed: true}, Update{General: true}, Update{Source: true},
		Update{General: true, Source: true}, Update{General: true, Fixed: true}, all),
		deepCases(Update{Fixed: true}, all)...)
}

// WeightedCases returns such cases of the weighted operator. In a third of them some sweeps have no norm.
func WeightedCases() []Case {
	fixed := Update{Weighted: true, Fixed: true}
	cases := append(wallCases(Update{Weighted: true}, fixed), deepCases(fixed)...)
	for i := range cases {
		if i%3 == 0 {
			cases[i].Norms = solver.EveryNth(2 + i%7)
		}
	}
	return cases
}

// wallCases returns cases of some operators on all walls.
func wallCases(updates ...Update) (cases []Case) {
	sides := [][2]solver.Wall{{solver.Dirichlet, solver.Dirichlet}, {solver.Neumann, solver.Dirichlet},
		{solver.Dirichlet, solver.Neumann}, {solver.Neumann, solver.Neumann}, {solver.Periodic, solver.Periodic}}
	r := rand.New(rand.NewPCG(1, 3))
	widths := []int{3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 30, 31, 32, 33, 34, 47, 62, 63, 64, 65, 66, 67, 80, 96, 100,
		126, 127, 128, 129, 130, 160, 191, 192, 193, 256, 300}
	depths := []int{1, 2, 3, 4, 5, 8, 11}
	for _, columns := range sides {
		for _, ends := range sides {
			walls := solver.Walls{Left: columns[0], Right: columns[1], Top: ends[0], Bottom: ends[1]}
			for _, u := range updates {
				if u == (Update{}) && (walls == solver.Walls{} || walls == solver.WrapRows(true)) {
					continue // Cases has them
				}
				for _, t := range []solver.DType{solver.Float32, solver.Float64} {
					for range 2 {
						depth := depths[r.IntN(len(depths))]
						cases = append(cases, fitting(Case{Mesh: solver.Mesh{NX: widths[r.IntN(len(widths))],
							NY: 3 + r.IntN(60), DType: t, Walls: walls}, Update: u, Ranks: 1 + r.IntN(4), Depth: depth,
							Sweeps: 1 + r.IntN(depth), Passes: 2}))
					}
				}
			}
		}
	}
	return cases
}

// deepCases returns cases of some operators in which passes have many sweeps.
func deepCases(updates ...Update) (cases []Case) {
	neumann := solver.Walls{Left: solver.Neumann, Right: solver.Neumann, Top: solver.Neumann, Bottom: solver.Neumann}
	for _, t := range []solver.DType{solver.Float32, solver.Float64} {
		for _, walls := range []solver.Walls{{}, solver.WrapRows(true), neumann} {
			for _, u := range updates {
				cases = append(cases, fitting(Case{Mesh: solver.Mesh{NX: 1100, NY: 90, DType: t, Walls: walls},
					Update: u, Ranks: 2, Depth: 16, Passes: 2}),
					fitting(Case{Mesh: solver.Mesh{NX: 1024, NY: 90, DType: t, Walls: walls}, Update: u, Ranks: 1,
						Depth: 32, Passes: 1}))
			}
		}
	}
	return cases
}

// fitting returns c with as many ranks, and with halos as deep, as its mesh allows.
func fitting(c Case) Case {
	interior := c.Mesh.Interior()
	for c.Ranks > 1 && solver.MaxRanks(interior, c.Depth) < c.Ranks {
		c.Ranks--
	}
	for c.Depth > 1 && solver.MaxRanks(interior, c.Depth) < c.Ranks {
		c.Depth--
	}
	c.Sweeps = min(c.Sweeps, c.Depth)
	return c
}
