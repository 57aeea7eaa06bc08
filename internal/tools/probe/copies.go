package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"jacobi/configs"
	"jacobi/cuda/driver"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/tools/probe/gpu"
)

const (
	smallestCopy = 4 << 10
	largestCopy  = 1 << 30
	copyTries    = 3
	// copyBytes is the least number of bytes that are copied between two looks at the clock, so that the launches of
	// small copies overlap as those of nvbandwidth and of a program with many copies do.
	copyBytes  = 64 << 20
	mostCopies = 256
	// The copy of the host's memory has hostShare bytes a core, within bounds: more than its caches hold, and no more
	// than the cores touch for the first time in a second.
	hostShare, hostLeast, hostMost = 64 << 20, 256 << 20, 1 << 30
	shareOfGPU                     = 0.25    // of the free memory of a GPU, for each of two arrays
	pageableSize                   = 1 << 28 // the largest pageable copy; larger ones are as fast and take long
	// linkShare is the least part of a PCIe link's rate that large copies from pinned memory reach on a sound machine:
	// packet headers and flow control take up to a fifth, the host's memory a little more.
	linkShare = 0.7
)

// copyWays are the kinds of copies, as they are called in figures, tables and findings.
var copyWays = []struct{ name, head, what string }{
	{"to_device.pinned", "to, pinned", "copies to it from pinned memory"},
	{"from_device.pinned", "from, pinned", "copies from it to pinned memory"},
	{"to_device.pageable", "to, pageable", "copies to it from pageable memory"},
	{"from_device.pageable", "from, pageable", "copies from it to pageable memory"},
	{"within_device", "within (read + written)", "copies within it"},
}

// copyRow has the rates of copies of one size on one GPU by their names, in bytes a second, without what was not
// measured.
type copyRow struct {
	bytes int64
	rates map[string]float64
}

// copies measures copies of host memory, between host and GPUs, and within GPUs.
func copies(ctx context.Context, m *Machine) (r Result, err error) {
	threads := runtime.GOMAXPROCS(0)
	bytes := min(hostMost, max(hostLeast, hostShare*threads))
	if free, _, err := configs.AvailableMemory(); err == nil {
		bytes = int(min(int64(bytes), max(1<<20, free/8)))
	}
	// Go does not interrupt a copy: the goroutines that tell the other ranks that this one lives get room of their own.
	runtime.GOMAXPROCS(threads + 2)
	host, err := cpu.CopyRate(ctx, bytes, threads)
	runtime.GOMAXPROCS(threads)
	if err != nil {
		return r, err
	}
	r.add(host, "B/s", "copies.host")
	r.say("host memory, %d threads copying %s: %s read and written", threads, size(int64(bytes)), rate(host))
	if m.NoGPU != nil {
		r.skip("copies of GPUs: %v", m.NoGPU)
	}
	all := make([][]copyRow, len(m.GPUs))
	for i := range m.GPUs {
		err := gpu.With(&m.GPUs[i], func(g *gpu.GPU) (err error) {
			defer m.near(i)()
			all[i], err = copiesOf(ctx, g)
			return err
		})
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err != nil {
			r.skip("%v", err)
		}
	}
	r.judgeCopies(m, all)
	return r, nil
}

// copiesOf measures the copies of a GPU: of powers of 4 times the smallest. Without pinned memory it returns the
// others, and the error.
func copiesOf(ctx context.Context, g *gpu.GPU) (rows []copyRow, err error) {
	room, err := g.Room(shareOfGPU)
	if err != nil {
		return nil, err
	}
	most := int64(smallestCopy)
	for 4*most <= min(largestCopy, room) {
		most *= 4
	}
	if most > room {
		return nil, fmt.Errorf("no memory is left on the GPU for a copy of %s", size(smallestCopy))
	}
	p := [2]driver.DevicePtr{g.Alloc(most), g.Alloc(most)}
	if g.Err() != nil {
		return nil, g.Err()
	}
	pinned, unpinned := g.Pinned(int(most))
	host, err := g.Pageable(int(min(most, pageableSize)))
	if err = errors.Join(err, g.Stream.Fill(p[0], 1, int(most)), g.Stream.Fill(p[1], 1, int(most))); err != nil {
		return nil, err
	}
	pageable := host.Bytes()
	for i := range pageable {
		pageable[i] = 1 // the system provides the pages now
	}
	for n := int64(smallestCopy); n <= most; n *= 4 {
		row := copyRow{n, map[string]float64{}}
		many := int(min(mostCopies, max(1, copyBytes/n)))
		add := func(name string, bytes int64, once func() (time.Duration, error)) {
			took, failed := gpu.Fastest(ctx, copyTries, once)
			row.rates[name], err = float64(bytes)/took.Seconds(), cmp.Or(err, failed)
		}
		queue := func(name string, bytes int64, copy func() error) {
			add(name, bytes*int64(many), g.Timed(g.Stream, gpu.Times(many, copy)))
		}
		queue("within_device", 2*n, func() error { return g.Stream.CopyOnDevice(p[0], p[1], int(n)) })
		if pinned != nil {
			queue("to_device.pinned", n, func() error { return g.Stream.CopyToDevice(p[0], pinned, 0, int(n)) })
			queue("from_device.pinned", n, func() error { return g.Stream.CopyFromDevice(pinned, 0, p[0], int(n)) })
		}
		if n <= int64(len(pageable)) { // the host waits for each
			part := pageable[:n]
			add("to_device.pageable", n, gpu.Wall(func() error { return g.Context.CopyToDevice(p[0], part) }))
			add("from_device.pageable", n, gpu.Wall(func() error { return g.Context.CopyFromDevice(part, p[0]) }))
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, unpinned
}

// judgeCopies adds tables, the largest copies of every GPU and all sizes of the first one, figures, and the GPUs that
// are slower than the others of this node or than their links.
func (r *Result) judgeCopies(m *Machine, all [][]copyRow) {
	columns := "GPU|size:B"
	for _, way := range copyWays {
		columns += "|" + way.head + ":B/s"
	}
	largest, sizes := newTable("the largest copies", columns), newTable("", columns)
	byGPU := map[string]map[int]float64{}
	for i, rows := range all {
		last := copyRow{rates: map[string]float64{}} // of each kind
		index := m.GPUs[i].Index
		for _, row := range rows {
			last.bytes = row.bytes
			maps.Copy(last.rates, row.rates)
			if i == 0 {
				sizes.row(row.cells(index)...)
			}
		}
		largest.row(last.cells(index)...)
		for _, way := range copyWays {
			if v, ok := last.rates[way.name]; ok {
				if byGPU[way.name] == nil {
					byGPU[way.name] = map[int]float64{}
				}
				byGPU[way.name][index] = v
				r.add(v, "B/s", "copies.gpu%d.%s", index, way.name)
			}
		}
		d, _ := m.describe(i) // Linux tells of links, too
		link := d.PCIe.BytesPerSecond(d.PCIe.MaxGeneration)
		for _, way := range []string{"to", "from"} {
			if v := last.rates[way+"_device.pinned"]; v > 0 && v < linkShare*link {
				r.find("GPU %d: copies %s it reach %s of the %s that its PCIe link can carry.", index, way, rate(v),
					rate(link))
			}
		}
	}
	for _, way := range copyWays {
		r.compare(way.what, "B/s", byGPU[way.name])
	}
	r.show(largest)
	r.show(sizes)
}

func (c copyRow) cells(gpu int) []any {
	cells := []any{gpu, float64(c.bytes)}
	for _, way := range copyWays {
		cells = append(cells, c.rates[way.name])
	}
	return cells
}
