package results

import (
	"cmp"
	"slices"
)

// ground is what the Materials of a row are; nil where they are 1.
type ground struct {
	Faces
	screening []float64
	outside   []bool
	turn      []float64 // the lengths of turns around an axis, by which the others are multiplied; nil without one
}

// newGround returns one of n columns to be filled.
func newGround(n int) *ground {
	return &ground{Faces: Faces{East: make([]float64, n), North: make([]float64, n)}, screening: make([]float64, n),
		outside: make([]bool, n)}
}

// around returns v times the length of the turn around an axis at a point.
func (g *ground) around(ix int, v float64) float64 {
	if g == nil || g.turn == nil {
		return v
	}
	return float64(v * g.turn[ix])
}

// toEast and toNorth return the coefficients of the faces beside a point.
func (g *ground) toEast(ix int) float64 {
	if g == nil {
		return 1
	}
	return g.East[ix]
}

func (g *ground) toNorth(ix int) float64 {
	if g == nil {
		return 1
	}
	return g.North[ix]
}

// liftEast and liftNorth return what is added to the steps beside a point.
func (g *ground) liftEast(ix int) float64 {
	if g == nil || g.LiftEast == nil {
		return 0
	}
	return g.LiftEast[ix]
}

func (g *ground) liftNorth(ix int) float64 {
	if g == nil || g.LiftNorth == nil {
		return 0
	}
	return g.LiftNorth[ix]
}

// none reports whether a point lies outside the material.
func (g *ground) none(ix int) bool { return g != nil && g.outside[ix] }

// straight reports whether no lift, no area in a face and no turn is among the materials of a row.
func (g *ground) straight() bool {
	return g == nil || g.LiftEast == nil && g.LiftNorth == nil && g.PinEast == nil && g.PinNorth == nil && g.turn == nil
}

// fill reads the materials of row iy.
func (t *Tally) fill(g *ground, iy int) error {
	if g == nil {
		return nil
	}
	iy, _ = t.mesh.Canonical(iy)
	err := cmp.Or(t.materials.Faces(iy, &g.Faces), t.materials.Screenings(iy, g.screening),
		t.materials.OutsideRow(iy, g.outside))
	if _, ok := t.problem.Axis(); ok && err == nil {
		g.turn = slices.Repeat([]float64{1}, t.mesh.NX)
		t.problem.Turn(iy, East, g.East)
		t.problem.Turn(iy, North, g.North)
		g.PinEast, g.PinNorth = t.turnPins(iy, East, g.PinEast), t.turnPins(iy, North, g.PinNorth)
		t.problem.Turn(iy, Squares, g.screening)
		t.problem.Turn(iy, Squares, g.turn)
	}
	return err
}
