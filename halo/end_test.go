package halo

import (
	"testing"

	"jacobi/solver"
)

var testRun = RunIDOf("conformance")

// testEnd returns the bottom end of rank 2, which faces rank 3, with halos of depth rows.
func testEnd(nx, depth int) End {
	return End{Run: testRun, Rank: 2, Neighbour: 3, Side: solver.Bottom, NX: nx, DType: solver.Float64,
		Send: solver.Stripe{Lo: 128 - depth, Hi: 128}, Recv: solver.Stripe{Lo: 128, Hi: 128 + depth}}
}

func TestEnds(t *testing.T) {
	mesh := solver.Mesh{NX: 4, NY: 34, DType: solver.Float32, Walls: solver.WrapRows(true)}
	for ranks := 1; ranks <= 4; ranks++ {
		stripes, err := solver.Partition(mesh.Interior(), ranks, 2)
		if err != nil {
			t.Fatal(err)
		}
		for r := range ranks {
			for side, e := range Ends(testRun, mesh, stripes, 2, r) {
				there := Ends(testRun, mesh, stripes, 2, e.Neighbour)[1-side]
				if e.Facing() != *there {
					t.Errorf("%d ranks: rank %d, %v faces %+v, want %+v", ranks, r, solver.Side(side), *there,
						e.Facing())
				}
				// The halo's rows by their numbers in the mesh.
				first := stripes[r].Hi
				if solver.Side(side) == solver.Top {
					first = stripes[r].Lo - 2
				}
				for i := range 2 {
					if want, _ := mesh.Canonical(first + i); e.Recv.Lo+i != want {
						t.Errorf("%d ranks: rank %d, %v: halo row %d is row %d, want %d", ranks, r, solver.Side(side),
							i, e.Recv.Lo+i, want)
					}
				}
			}
		}
	}
	mesh.Walls = solver.Walls{}
	stripes, _ := solver.Partition(mesh.Interior(), 2, 2)
	if e := Ends(testRun, mesh, stripes, 2, 0); e[solver.Top] != nil || e[solver.Bottom] == nil {
		t.Errorf("ends of the first rank: %v", e)
	}
	if e := Ends(testRun, mesh, stripes, 2, 1); e[solver.Bottom] != nil || e[solver.Top] == nil {
		t.Errorf("ends of the last rank: %v", e)
	}
}
