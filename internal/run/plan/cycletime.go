package plan

import "time"

// The time of a multigrid cycle, for a point and at least, on a core of an AMD EPYC and on an H200 (docs/methods.md).
const (
	cyclePointCPU = 8e-9 // s
	cyclePointGPU = 0.016e-9
	leastCycleCPU = 50 * time.Microsecond
	leastCycleGPU = 250 * time.Microsecond
)

// cycleTime estimates the time of a multigrid cycle on the devices of the plan, to about a factor of three: processors
// and links differ.
func (p *Plan) cycleTime(fixed bool) time.Duration {
	point, least, devices := cyclePointCPU, leastCycleCPU, 0
	if p.OnGPUs && !fixed { // with fixed points, the CPU's part of a cycle takes most of the time
		point, least, devices = cyclePointGPU, leastCycleGPU, len(p.Ranks)
	} else {
		for _, r := range p.Ranks {
			devices += threadsOf(p.Config.Device, r.LocalSize)
		}
	}
	seconds := point * float64(p.Mesh.NX) * float64(p.Mesh.NY) / float64(devices)
	return least + time.Duration(seconds*float64(time.Second))
}
