package solver

// Pass is one pass over a stripe: Sweeps sweeps, of which the first has number First, from the field now into the field
// next. It computes rows [Lo-Margin, Hi+Margin), as far as they are interior rows or, beyond a side with a neighbour,
// halo rows; it reads Sweeps rows more on each side. Margin is 0 in the last pass before an exchange. Norms count the
// rows [Lo, Hi) alone.
type Pass struct {
	Index  uint64 // 0, 1, 2, ...; a pass that is replayed keeps its number
	First  int
	Sweeps int
	Margin int
}
