package probe

import (
	"context"
	"fmt"
	"runtime"
	"strings"
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
)

// CopyRow has the rates of copies of one size on one GPU, in bytes a second; 0 for what was not measured.
type CopyRow struct {
	Bytes        int64   `json:"bytes"`
	To           float64 `json:"to_device_pinned,omitempty"`
	From         float64 `json:"from_device_pinned,omitempty"`
	ToPageable   float64 `json:"to_device_pageable,omitempty"`
	FromPageable float64 `json:"from_device_pageable,omitempty"`
	Within       float64 `json:"within_device,omitempty"` // bytes read and bytes written
}

// GPUCopies has the rates of all copies of one GPU.
type GPUCopies struct {
	GPU   int       `json:"gpu"`
	Rows  []CopyRow `json:"rows"`
	Fault string    `json:"fault,omitempty"` // why rows are missing
	// LinkRate is what the PCIe link can carry one way, in bytes a second; 0 if it is unknown.
	LinkRate float64 `json:"link_rate,omitempty"`
}

// copiesReport is the data of the part copies.
type copiesReport struct {
	Host      float64     `json:"host_copy"` // bytes read and written a second
	HostBytes int         `json:"host_copy_bytes"`
	Threads   int         `json:"host_copy_threads"`
	GPUs      []GPUCopies `json:"gpus"`
}

// copies measures copies of host memory, between host and GPUs, and within GPUs.
func copies(ctx context.Context, m *Machine) (r Result, err error) {
	d := copiesReport{Threads: runtime.GOMAXPROCS(0), GPUs: []GPUCopies{}}
	d.HostBytes = min(hostMost, max(hostLeast, hostShare*d.Threads))
	if free, _, err := configs.AvailableMemory(); err == nil {
		d.HostBytes = int(min(int64(d.HostBytes), max(1<<20, free/8)))
	}
	if d.Host, err = hostRate(ctx, d.HostBytes, d.Threads); err != nil {
		return r, err
	}
	r.add(d.Host, "B/s", "copies.host")
	if m.NoGPU != nil {
		r.NotRun = "copies of GPUs: " + m.NoGPU.Error()
	}
	for i := range m.GPUs {
		c, err := copiesOf(ctx, m, i)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err != nil {
			c.Fault = err.Error()
			r.skip("%s", c.Fault)
		}
		d.GPUs = append(d.GPUs, c)
	}
	d.judge(&r)
	r.Data, r.Text = d, d.text()
	return r, nil
}

// hostRate measures copies of the host's memory. Go does not interrupt a copy, so the goroutines that tell the other
// ranks that this one lives get room of their own.
func hostRate(ctx context.Context, bytes, threads int) (float64, error) {
	before := runtime.GOMAXPROCS(threads + 2)
	defer runtime.GOMAXPROCS(before)
	return cpu.CopyRate(ctx, bytes, threads)
}

// copiesOf measures the copies of GPU i, on a thread that runs near it.
func copiesOf(ctx context.Context, m *Machine, i int) (c GPUCopies, err error) {
	c = GPUCopies{GPU: m.GPUs[i].Index, Rows: []CopyRow{}, LinkRate: m.linkRate(i)}
	g, err := gpu.Open(&m.GPUs[i])
	if err != nil {
		return c, err
	}
	defer func() { err = g.Closed(err) }()
	defer m.near(i)()
	room, err := g.Room(shareOfGPU)
	if err != nil {
		return c, err
	}
	most := min(largestCopy, room)
	if most < smallestCopy {
		return c, fmt.Errorf("no memory is left on the GPU for a copy of %s", size(smallestCopy))
	}
	sizes := copySizes(most)
	b, err := newCopyBench(g, sizes[len(sizes)-1])
	if err != nil {
		return c, err
	}
	for _, n := range sizes {
		row, err := b.row(ctx, n)
		if err != nil {
			return c, err
		}
		c.Rows = append(c.Rows, row)
	}
	return c, b.unpinned
}

// copySizes returns the sizes of copies up to most: powers of 4 times the smallest.
func copySizes(most int64) (sizes []int64) {
	for n := int64(smallestCopy); n <= most; n *= 4 {
		sizes = append(sizes, n)
	}
	return sizes
}

// copyBench holds the memory of a measurement.
type copyBench struct {
	g        *gpu.GPU
	stream   *driver.Stream
	device   [2]driver.DevicePtr
	pinned   *driver.HostMemory // nil if it could not be allocated
	unpinned error              // why not
	pageable []byte
}

func newCopyBench(g *gpu.GPU, most int64) (b *copyBench, err error) {
	b = &copyBench{g: g}
	if b.stream, err = g.Stream(); err != nil {
		return nil, err
	}
	for i := range b.device {
		if b.device[i], err = g.Alloc(most); err != nil {
			return nil, err
		}
		if err := b.stream.Fill(b.device[i], 1, int(most)); err != nil {
			return nil, err
		}
	}
	b.pinned, b.unpinned = g.Pinned(int(most))
	pageable, err := g.Pageable(int(min(most, pageableSize)))
	if err != nil {
		return nil, err
	}
	b.pageable = pageable.Bytes()
	for i := range b.pageable {
		b.pageable[i] = 1 // the system provides the pages now
	}
	return b, nil
}

// row measures copies of n bytes.
func (b *copyBench) row(ctx context.Context, n int64) (row CopyRow, err error) {
	row.Bytes = n
	copies := int(min(mostCopies, max(1, copyBytes/n)))
	queued := func(copy func() error) (float64, error) {
		took, err := b.g.Fastest(ctx, b.stream, copyTries, func() error {
			for range copies {
				if err := copy(); err != nil {
					return err
				}
			}
			return nil
		})
		return float64(n) * float64(copies) / took.Seconds(), err
	}
	if row.Within, err = queued(func() error {
		return b.stream.CopyOnDevice(b.device[0], b.device[1], int(n))
	}); err != nil {
		return row, err
	}
	row.Within *= 2
	if b.pinned != nil {
		if row.To, err = queued(func() error {
			return b.stream.CopyToDevice(b.device[0], b.pinned, 0, int(n))
		}); err != nil {
			return row, err
		}
		if row.From, err = queued(func() error {
			return b.stream.CopyFromDevice(b.pinned, 0, b.device[0], int(n))
		}); err != nil {
			return row, err
		}
	}
	if n > int64(len(b.pageable)) {
		return row, nil
	}
	memory := b.pageable[:n]
	if row.ToPageable, err = waited(ctx, n, func() error {
		return b.g.Context.CopyToDevice(b.device[0], memory)
	}); err != nil {
		return row, err
	}
	row.FromPageable, err = waited(ctx, n, func() error { return b.g.Context.CopyFromDevice(memory, b.device[0]) })
	return row, err
}

// waited returns the rate of the fastest of several copies of n bytes that the host waits for.
func waited(ctx context.Context, n int64, copy func() error) (rate float64, err error) {
	for range copyTries + 1 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		if err := copy(); err != nil {
			return 0, err
		}
		rate = max(rate, float64(n)/time.Since(start).Seconds())
	}
	return rate, nil
}

// last returns the rates of the largest copies of each kind.
func (c GPUCopies) last() (top CopyRow) {
	for _, row := range c.Rows {
		if row.ToPageable > 0 {
			top.ToPageable, top.FromPageable = row.ToPageable, row.FromPageable
		}
		top.Bytes, top.To, top.From, top.Within = row.Bytes, row.To, row.From, row.Within
	}
	return top
}

// judge adds figures, and the GPUs that are slower than the others of this node or than their links.
func (d copiesReport) judge(r *Result) {
	kinds := []struct {
		name, what string
		get        func(CopyRow) float64
	}{
		{"to_device.pinned", "copies to it from pinned memory", func(c CopyRow) float64 { return c.To }},
		{"from_device.pinned", "copies from it to pinned memory", func(c CopyRow) float64 { return c.From }},
		{"to_device.pageable", "copies to it from pageable memory", func(c CopyRow) float64 { return c.ToPageable }},
		{"from_device.pageable", "copies from it to pageable memory",
			func(c CopyRow) float64 { return c.FromPageable }},
		{"within_device", "copies within it", func(c CopyRow) float64 { return c.Within }},
	}
	for _, k := range kinds {
		rates := map[int]float64{}
		for _, c := range d.GPUs {
			if v := k.get(c.last()); v > 0 {
				rates[c.GPU] = v
				r.add(v, "B/s", "copies.gpu%d.%s", c.GPU, k.name)
			}
		}
		r.compare(k.what, rates)
	}
	for _, c := range d.GPUs {
		for _, way := range []struct {
			name string
			rate float64
		}{{"to", c.last().To}, {"from", c.last().From}} {
			if way.rate > 0 && way.rate < linkShare*c.LinkRate {
				r.find("GPU %d: copies %s it reach %s of the %s that its PCIe link can carry.", c.GPU, way.name,
					rate(way.rate), rate(c.LinkRate))
			}
		}
	}
}

// linkShare is the least part of a PCIe link's rate that large copies from pinned memory reach on a sound machine:
// packet headers and flow control take up to a fifth, the host's memory a little more.
const linkShare = 0.7

// text returns the tables of the part: the largest copies of every GPU, and all sizes of the first one.
func (d copiesReport) text() string {
	text := fmt.Sprintf("  host memory, %d threads copying %s: %s read and written\n", d.Threads,
		size(int64(d.HostBytes)), rate(d.Host))
	if len(d.GPUs) == 0 {
		return text
	}
	const heads = "to, pinned\tfrom, pinned\tto, pageable\tfrom, pageable\twithin (read + written)\n"
	var b strings.Builder
	b.WriteString("GPU\tlargest copy\t" + heads)
	for _, c := range d.GPUs {
		fmt.Fprintf(&b, "%d\t%s\t%s\n", c.GPU, size(c.last().Bytes), c.last().cells())
	}
	text += table(b.String())
	if len(d.GPUs[0].Rows) == 0 {
		return text
	}
	b.Reset()
	fmt.Fprintf(&b, "GPU %d\t%s", d.GPUs[0].GPU, heads)
	for _, row := range d.GPUs[0].Rows {
		fmt.Fprintf(&b, "%s\t%s\n", size(row.Bytes), row.cells())
	}
	return text + table(b.String())
}

func (c CopyRow) cells() string {
	var cells []string
	for _, v := range []float64{c.To, c.From, c.ToPageable, c.FromPageable, c.Within} {
		text := "-"
		if v > 0 {
			text = rate(v)
		}
		cells = append(cells, text)
	}
	return strings.Join(cells, "\t")
}
