package aggregation

import "errors"

// Levels are the levels of a mesh from level 1 on. They are the same on all ranks.
type Levels struct {
	First  []int32 // by row of tiles: its first unknown of level 1; and the number of unknowns
	Levels []Level // Levels[0] is level 1
}

// Level is the equations of a level, and how its unknowns come together on the next one.
type Level struct {
	Excess    []float32 // e, by unknown
	Inverse   []float64 // 1/d, and 0 where d is 0
	Begin     []int32   // by unknown: its first face; and the number of faces
	Neighbour []int32   // by face, in ascending order for each unknown
	Face      []float32 // f, by face
	Set       []int32   // by unknown: its unknown on the next level, -1 for one without faces; nil on the coarsest
	// By unknown of the next level: the first of its Members; and their number. Members are in ascending order.
	First, Members []int32
}

// New puts the levels together from the parts of all ranks, from the top of the mesh to the bottom. It fails if they
// are not those of the tiling.
func New(t Tiling, parts [][]byte, threads int) (*Levels, error) {
	return nil, errors.New("aggregation: not yet")
}

// Bytes returns the bytes of memory that the levels take.
func (l *Levels) Bytes() int64 { return 0 }
