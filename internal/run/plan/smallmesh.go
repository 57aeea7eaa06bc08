package plan

import (
	"fmt"
	"time"

	"jacobi/cuda"
	"jacobi/solver/methods"
)

// Several GPUs of a node cannot do a sweep faster than this, however small their stripes are: see "Single node" and
// "Eight GPUs" in docs/results.md.
const (
	sweepOnFour  = 2.0e-6 // seconds, on two to four GPUs
	sweepOnEight = 5.1e-6 // on five GPUs and more: measured on eight
)

// clearly is the least share of time that a warning must promise to save.
const clearly = 0.2

// smallForGPUs returns a warning if a mesh is so small that one GPU would sweep it clearly faster than the GPUs of this
// machine together.
func (p *Plan) smallForGPUs() []string {
	if p.Config.Solver.Step() != methods.Sweep || len(p.Names()) > 1 {
		return nil
	}
	used := map[int]bool{}
	for _, c := range p.Choices {
		if c != nil {
			used[c.Index] = true
		}
	}
	together := sweepOnFour
	if len(used) > 4 {
		together = sweepOnEight
	}
	fixed, rate := cuda.Pace(p.Mesh.DType)
	one := fixed + float64(p.Mesh.NX)*float64(p.Mesh.NY)/rate
	if len(used) < 2 || one > (1-clearly)*together {
		return nil
	}
	us := func(seconds float64) time.Duration { return time.Duration(seconds*1e9) / 100 * 100 }
	return []string{fmt.Sprintf("one GPU would be about %.1f times as fast as %d: it sweeps %d x %d points in "+
		"about %v, and several GPUs need %v for a sweep of any mesh; use -np 1", together/one, len(used), p.Mesh.NX,
		p.Mesh.NY, us(one), us(together))}
}
