package rank

import (
	"math"
	"slices"
	"testing"

	"jacobi/internal/roster"
	"jacobi/solver"
)

// groupsOf returns the groups of members, by rank.
func groupsOf(t *testing.T, members []roster.Member) []roster.Group {
	t.Helper()
	groups, err := roster.GroupsOf(members)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// All ranks compute the same stripes and depth from their roster, and each its own stripe and neighbours.
func TestPlanFollowsFromTheMembers(t *testing.T) {
	members := []roster.Member{
		{Depth: 12, MaxSweeps: math.MaxInt32},
		{Depth: 16, MaxSweeps: 10},
		{Depth: 16, MaxSweeps: math.MaxInt32},
	}
	groups := groupsOf(t, members)
	for _, periodic := range []bool{false, true} {
		mesh := solver.Mesh{NX: 66, NY: 98, DType: solver.Float32, Walls: solver.WrapRows(periodic)}
		want := []solver.Stripe{{Lo: 1, Hi: 32}, {Lo: 32, Hi: 64}, {Lo: 64, Hi: 97}}
		for rank := range members {
			p, err := newPlan(mesh, commonDepth(groups, 31), nil, roster.Identity{Rank: rank, Size: 3}, groups)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.stripes, want) || p.layout.Stripe != want[rank] {
				t.Errorf("rank %d: stripes %v, its own %v, want %v", rank, p.stripes, p.layout.Stripe, want)
			}
			if p.layout.Depth != 12 || p.passSweeps != 10 {
				t.Errorf("rank %d: depth %d and %d sweeps a pass, want 12 and 10", rank, p.layout.Depth, p.passSweeps)
			}
			if n := [2]bool{periodic || rank > 0, periodic || rank < 2}; p.layout.Neighbour != n {
				t.Errorf("rank %d, periodic %t: neighbours %v, want %v", rank, periodic, p.layout.Neighbour, n)
			}
		}
	}
}

// halo.depth from the run file counts, whatever the backends prefer. One that does not fit the stripes is refused.
func TestPlanTakesTheDepthOfTheRunFile(t *testing.T) {
	mesh := solver.Mesh{NX: 66, NY: 98, DType: solver.Float64}
	groups := groupsOf(t, slices.Repeat([]roster.Member{{Depth: 12, MaxSweeps: 16}}, 3))
	middle := roster.Identity{Rank: 1, Size: 3}
	p, err := newPlan(mesh, haloDepth{Rows: 24, Sweeps: 24}, nil, middle, groups)
	if err != nil {
		t.Fatal(err)
	}
	if p.layout.Depth != 24 || p.passSweeps != 16 {
		t.Errorf("depth %d and %d sweeps a pass, want 24 and 16", p.layout.Depth, p.passSweeps)
	}
	_, err = newPlan(mesh, haloDepth{Rows: 33, Sweeps: 33}, nil, middle, groups)
	_, want := solver.Partition(mesh.Interior(), 3, 33)
	if err == nil || err.Error() != want.Error() {
		t.Errorf("depth 33: %v, want %v", err, want)
	}
}
