package setup

import (
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// Ranks on other nodes work where their GPUs save more time than the rows take, where the memory of the first node is
// too small, and where a key says so.
func TestWorking(t *testing.T) {
	h200, slow := GPUs{Count: 4, Bytes: 141e9, Rate: 4.9e12}, GPUs{Count: 4, Bytes: 16e9, Rate: 0.32e12}
	for _, c := range []struct {
		n, ranks, near int
		gpus           GPUs
		change         func(*configs.Config)
		want           int
	}{
		{4096, 2, 1, h200, nil, 1},
		{16384, 2, 1, h200, nil, 1},
		{65536, 2, 1, h200, nil, 2},
		{16384, 8, 4, h200, nil, 4},
		{16384, 4, 4, h200, nil, 4},
		{2048, 2, 1, slow, nil, 1},
		{16384, 2, 1, slow, nil, 2},
		{16384, 2, 1, GPUs{Count: 1, Bytes: 5e9, Rate: 4.9e12}, nil, 2},
		{16384, 3, 2, GPUs{Count: 2, Bytes: 6e9, Rate: 4.9e12}, nil, 2},
		{16384, 3, 2, GPUs{Count: 1, Bytes: 6e9, Rate: 4.9e12}, nil, 3},
		{4096, 2, 1, GPUs{Count: 1, Bytes: 141e9}, nil, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Halo.Transport = "nats" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Halo.Transport = "direct" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Run.Balance = "1,1" }, 2},
		{4096, 2, 1, h200, func(c *configs.Config) { c.Solver.Method = configs.Jacobi }, 2},
	} {
		k := configs.Default()
		k.Problem.Preset, k.Grid.NX, k.Grid.NY, k.Run.Ranks = "dirichlet", c.n, c.n, c.ranks
		k.Solver.Method = configs.Multigrid
		if c.change != nil {
			c.change(&k)
		}
		mesh := solver.Mesh{NX: c.n, NY: c.n, DType: solver.Float64}
		got, err := Working(k, mesh, solver.Operator{}, c.ranks, c.near, c.gpus)
		if err != nil || got != c.want {
			t.Errorf("%d points a side, %d of %d ranks near %+v: %d work, %v; want %d", c.n, c.near, c.ranks, c.gpus,
				got, err, c.want)
		}
	}
}
