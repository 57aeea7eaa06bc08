package cuda

import "jacobi/solver"

const (
	onceThreads = 128 // a block
	onceColumns = 4   // a lane
)

// once describes sweep_once.cu, whose blocks do tile after tile, as many at once as the device holds.
func once(suffix string) shape {
	divide := func(c capacity, p *pass) (division, bool) {
		const columns, rows = onceColumns * onceThreads, 2 * solver.GroupRows
		tiles := (int(p.nx) + columns - 1) / columns * ((p.groups()*solver.GroupRows + rows - 1) / rows)
		return division{blocks: min(c.held*c.sms, tiles), threads: onceThreads, cut: cut{tileRows: rows}}, true
	}
	return shape{name: "once_" + suffix, threads: onceThreads, most: 1, divide: divide}
}
