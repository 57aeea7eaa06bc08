package configs

import "jacobi/solver"

// leastHalf is the least number of intervals, each way, of a mesh that is half of another one.
const leastHalf = 4

// Halved returns c on half of its mesh: half the intervals each way, rounded up, with the same width and height. It
// returns false if too few intervals are left.
func (c Config) Halved() (half Config, ok bool) {
	walls, _ := c.Problem.Walls(c.Grid.DType)
	nx, ny := solver.Intervals(c.Grid.NX, walls.Left), solver.Intervals(c.Grid.NY, walls.Top)
	half = c
	half.Grid.NX, half.Grid.NY = c.Grid.NX-nx+(nx+1)/2, c.Grid.NY-ny+(ny+1)/2
	if c.Grid.Height == 0 {
		half.Grid.Height = c.Grid.Width / float64(nx) * float64(ny)
	}
	return half, min((nx+1)/2, (ny+1)/2) >= leastHalf
}
