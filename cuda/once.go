package cuda

import "jacobi/solver"

const (
	onceThreads = 128 // in a block
	onceColumns = 4   // of a lane
)

// once describes a kernel of sweep_once.cu. There are as many blocks as the device holds at once, and each block does
// one tile after another.
func once(suffix string) shape {
	divide := func(c capacity, p *pass) (division, bool) {
		const columns, rows = onceColumns * onceThreads, 2 * solver.GroupRows
		tiles := (int(p.nx) + columns - 1) / columns * ((p.groups()*solver.GroupRows + rows - 1) / rows)
		return division{blocks: min(c.held*c.sms, tiles), threads: onceThreads, cut: cut{tileRows: rows}}, true
	}
	return shape{name: "once_" + suffix, maxThreads: onceThreads, maxSweeps: 1, divide: divide}
}
