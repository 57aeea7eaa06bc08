package setup

import (
	"fmt"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/halo"
	"jacobi/solver"
)

// GPUs are those of the node of rank 0.
type GPUs struct {
	Count int     `json:"count"`
	Bytes int64   `json:"bytes"` // memory of the smallest
	Rate  float64 `json:"rate"`  // bytes a second from the memory of the slowest; 0 if that is not known
}

// GPUsOf returns the GPUs of a node.
func GPUsOf(devices []driver.Device) (g GPUs) {
	for i := range devices {
		bytes, rate := devices[i].TotalBytes, devices[i].MemoryRate()
		if i == 0 {
			g = GPUs{Bytes: bytes, Rate: rate}
		}
		g.Count, g.Bytes, g.Rate = i+1, min(g.Bytes, bytes), min(g.Rate, rate)
	}
	return g
}

// A cycle between nodes, by the figures under "Multigrid" in docs/notebook/nats.md.
const (
	pointBytes      = 80      // memory traffic of a cycle for a point of the mesh
	exchangeSeconds = 0.36e-3 // an exchange of a level without its bytes
	linkBytes       = 1.5e9   // a second
)

// freeShare is the share of the memory of a GPU that a run may fill: the driver and other processes need some.
const freeShare = 0.9

// Working returns how many of ranks with GPUs divide a run of multigrid on a mesh. The first near ranks are on the node
// of rank 0 and write into each other's memory. They work alone if the others are on other nodes, and if the cycles
// would take longer with these than without. Transports and weights that the keys name have all ranks work.
func Working(c configs.Config, mesh solver.Mesh, op solver.Operator, ranks, near int, g GPUs) (int, error) {
	weights, err := c.Weights()
	method := c.Solver.Entry()
	if err != nil || !method.Levels || near >= ranks || c.Halo.Transport != string(halo.ModeAuto) || weights != nil ||
		g.Rate == 0 {
		return ranks, err
	}
	depth, _ := DepthOf(c, mesh, 1)
	few, err := New(Options{Mesh: mesh, Operator: op, Method: method, Ranks: near, Depth: depth, ReachAll: near > 1})
	if err != nil {
		return ranks, err
	}
	bytes, err := few.LevelBytes(c, 0, true)
	sharing := (near + g.Count - 1) / g.Count
	if err != nil || float64(bytes)*float64(sharing) > freeShare*float64(g.Bytes) {
		return ranks, err
	}
	all, err := New(Options{Mesh: mesh, Operator: op, Method: method, Ranks: ranks, Depth: depth})
	if err != nil {
		return ranks, err
	}
	alone := pointBytes * float64(mesh.NX) * float64(mesh.NY) / (g.Rate * float64(min(near, g.Count)))
	if alone <= alone*float64(near)/float64(ranks)+all.linkSeconds() {
		return near, nil
	}
	return ranks, nil
}

// linkSeconds estimates the time of a cycle in which ranks wait for rows of other nodes: those of each divided level on
// the way down and on the way up, and the gathered level. The rows of all coarser levels together are as long as those
// of the finest.
func (s *Setup) linkSeconds() float64 {
	exchanges := 2*s.Levels.Agglomerated + 1
	bytes := 2*s.Depth.Rows*s.Mesh.RowBytes() + 4*s.Levels.Points/2
	return exchangeSeconds*float64(exchanges) + float64(bytes)/linkBytes
}

// Idle says in one line how many ranks of a run stay idle, and why; "" if none does.
func Idle(c configs.Config, working int) string {
	if working == c.Working() {
		return c.Idle()
	}
	return fmt.Sprintf("multigrid runs on %d of %d ranks: rows between nodes travel through the hosts, which takes "+
		"longer than more GPUs save (with halo.transport nats or direct, all ranks work)", working, c.Run.Ranks)
}
