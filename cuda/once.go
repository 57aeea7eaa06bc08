package cuda

import "jacobi/solver"

// once describes sweep_once.cu, whose blocks do tile after tile, as many at once as the device holds.
func once(suffix string) shape {
	const threads, columns, rows = 128, 4 * 128, 2 * solver.GroupRows
	return shape{name: "once_" + suffix, threads: threads, most: 1, divide: func(c capacity, p *pass) (division, bool) {
		p.tileRows = rows
		tiles := (int(p.nx) + columns - 1) / columns * ((p.groups()*solver.GroupRows + rows - 1) / rows)
		return division{blocks: min(c.held*c.sms, tiles), threads: threads}, true
	}}
}
