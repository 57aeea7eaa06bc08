package solver

// Pass is Sweeps sweeps of a stripe, beginning with sweep number First, for one read of the field now and one write of
// the field next. It computes rows [Lo-Margin, Hi+Margin), as far as they are interior rows or, beyond a side with a
// neighbour, halo rows, and reads Sweeps rows more on each side. Margin is 0 in the last pass before an exchange. Norms
// count rows [Lo, Hi) only.
type Pass struct {
	Index  uint64 // 0, 1, 2, ...; a replayed pass keeps its index
	First  int
	Sweeps int
	Margin int
}
