// Package probes records the values of points of the mesh while a run goes on.
package probes

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/background"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// Options are what Probes take of their run.
type Options struct {
	Comm    *roster.Comm
	Log     *zap.Logger
	Output  configs.Output
	Place   output.Place // rank 0 only
	View    output.View
	HX, HY  float64       // spacings of the mesh
	Start   int           // sweeps of the field from which the run goes on
	Timeout time.Duration // of a step in which ranks wait for each other
}

// Probes record values. Each rank reads its own points, and rank 0 writes them in the background. Values that cannot be
// written are only a warning.
type Probes struct {
	background.Background
	Options
	points
	lines []string // of each point, what stands between the number of sweeps and the value; rank 0 only

	file  *output.Growing     // rank 0 only; nil before the first values
	stats output.ProbesReport // rank 0 only; not while values are written
}

// points are those of all probes.
type points struct {
	rows  []int            // with points, ascending
	at    map[int][]probed // by row
	count int
}

// probed is a point with its place among all points.
type probed struct{ ix, index int }

func pointsOf(list []configs.Probe) points {
	p := points{at: map[int][]probed{}}
	for _, probe := range list {
		for _, at := range probe.Points {
			p.at[at.IY] = append(p.at[at.IY], probed{at.IX, p.count})
			p.count++
		}
	}
	p.rows = slices.Sorted(maps.Keys(p.at))
	return p
}

// Read returns, on rank 0, the values of the probes now. All ranks call it.
func Read(ctx context.Context, comm *roster.Comm, view output.View, text string) (output.Probed, error) {
	list, err := configs.ParseProbes(text, view.Mesh)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	p := pointsOf(list)
	values, err := p.gather(ctx, comm, view)
	if err != nil || values == nil {
		return nil, err
	}
	found := output.Probed{}
	for _, probe := range list {
		for i := range probe.Points {
			v := &values[i]
			if math.IsNaN(*v) || math.IsInf(*v, 0) {
				v = nil
			}
			found[probe.Name] = append(found[probe.Name], v)
		}
		values = values[len(probe.Points):]
	}
	return found, nil
}

// gather returns, on rank 0, the values of all points.
func (p points) gather(ctx context.Context, comm *roster.Comm, view output.View) ([]float64, error) {
	own, err := p.read(ctx, view)
	if err != nil {
		return nil, err
	}
	parts, err := comm.Gather(ctx, "probes", own)
	if err != nil || comm.Self().Rank != 0 {
		return nil, err
	}
	return p.merge(parts)
}

// New returns the probes of a run; nil if the configuration names none.
func New(o Options) (*Probes, error) {
	list, err := configs.ParseProbes(o.Output.Probes, o.View.Mesh)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	p := &Probes{Background: background.New(o.Comm.Context(), "probes"), Options: o, points: pointsOf(list)}
	for _, probe := range list {
		for _, point := range probe.Points {
			if o.Comm.Self().Rank == 0 {
				p.lines = append(p.lines, fmt.Sprintf("%s,%d,%d,%s,%s", probe.Name, point.IX, point.IY,
					shortest(float64(point.IX)*o.HX), shortest(float64(point.IY)*o.HY)))
			}
		}
	}
	p.stats = output.ProbesReport{Every: o.Output.ProbesInterval().Sweeps, Points: p.count}
	return p, nil
}

// Sampling returns the samples that the probes want.
func (p *Probes) Sampling() solver.Sampling { return solver.Sampling{Sampler: p, Every: p.stats.Every} }

func shortest(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Sample implements solver.Sampler.
func (p *Probes) Sample(ctx context.Context, at solver.Sample) error {
	if err := p.Wait(ctx); err != nil {
		return err
	}
	values, err := p.read(ctx, p.View)
	if err != nil {
		return err
	}
	p.Do(func(ctx context.Context) error { return p.record(ctx, at.Sweeps, values) })
	return nil
}

// valueBytes is the size of a value that a rank sends: the place of its point, u32, and its bits, u64.
const valueBytes = 4 + 8

// read returns the values of this rank's points.
func (p points) read(ctx context.Context, view output.View) (values []byte, err error) {
	mesh := view.Mesh
	row := make([]float64, mesh.NX)
	add := func(iy int, data []byte) {
		mesh.DType.Decode(row, data)
		for _, q := range p.at[iy] {
			values = binary.LittleEndian.AppendUint32(values, uint32(q.index))
			values = binary.LittleEndian.AppendUint64(values, math.Float64bits(row[q.ix]))
		}
	}
	for rest := p.rows; len(rest) > 0; {
		n := together(rest, view.Stripe, max(1, (1<<20)/mesh.RowBytes()))
		if n == 0 { // a row of the boundary, perhaps of this rank
			data, err := view.Boundary(ctx, rest[0])
			if err != nil {
				return nil, err
			}
			if data != nil {
				add(rest[0], data)
			}
			rest = rest[1:]
			continue
		}
		data := make([]byte, n*mesh.RowBytes())
		if err := view.Rows.CopyRows(ctx, solver.Stripe{Lo: rest[0], Hi: rest[0] + n}, data); err != nil {
			return nil, fmt.Errorf("copy row %d: %w", rest[0], err)
		}
		for i := range n {
			add(rest[i], data[i*mesh.RowBytes():(i+1)*mesh.RowBytes()])
		}
		rest = rest[n:]
	}
	return values, nil
}

// together returns how many of the first rows follow each other in a stripe, at most the given number.
func together(rows []int, s solver.Stripe, most int) (n int) {
	for n < min(len(rows), most) && rows[n] == rows[0]+n && rows[n] >= s.Lo && rows[n] < s.Hi {
		n++
	}
	return n
}

// record sends the values to rank 0, which writes those of all ranks. It fails only if the ranks lose each other.
func (p *Probes) record(ctx context.Context, sweeps int, values []byte) error {
	ctx, cancel := awake.WithTimeout(ctx, p.Timeout)
	defer cancel()
	parts, err := p.Comm.Gather(ctx, "probes", values)
	if err != nil || p.Comm.Self().Rank != 0 {
		return err
	}
	all, err := p.merge(parts)
	if err != nil {
		return err
	}
	var text []byte
	bits := 8 * p.View.Mesh.DType.Size()
	for i, v := range all {
		text = fmt.Appendf(text, "%d,%s,%s\n", sweeps, p.lines[i], strconv.FormatFloat(v, 'g', -1, bits))
	}
	if err := p.write(text); err != nil {
		if p.stats.Error == "" {
			p.Log.Sugar().Warnf("%s: values are not written, the run goes on: %v", configs.ProbesFile, err)
		}
		p.stats.Error = err.Error()
		return nil
	}
	p.stats.Samples, p.stats.Error = p.stats.Samples+1, ""
	return nil
}

// merge returns the values that all ranks have read.
func (p points) merge(parts [][]byte) ([]float64, error) {
	all, seen := make([]float64, p.count), make([]bool, p.count)
	for rank, part := range parts {
		for ; len(part) >= valueBytes; part = part[valueBytes:] {
			i := int(binary.LittleEndian.Uint32(part))
			if i >= len(all) || seen[i] {
				return nil, fmt.Errorf("probes: rank %d has sent the value of point %d", rank, i)
			}
			all[i], seen[i] = math.Float64frombits(binary.LittleEndian.Uint64(part[4:])), true
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return nil, fmt.Errorf("probes: no rank has sent the value of point %d", i)
	}
	return all, nil
}

func (p *Probes) write(text []byte) error {
	if p.file == nil {
		f, end, err := p.Place.GrowProbes(p.Start)
		if err != nil {
			return err
		}
		p.file = output.NewGrowing(f, end)
	}
	return p.file.Add(text)
}

// Finish completes the file.
func (p *Probes) Finish(ctx context.Context, _ solver.Result) error {
	if err := p.Wait(ctx); err != nil || p.file == nil {
		return err
	}
	if err := p.file.Close(); err != nil && p.stats.Error == "" {
		p.Log.Sugar().Warnf("%s: %v", configs.ProbesFile, err)
		p.stats.Error = err.Error()
	}
	return nil
}

// Report describes the probes; nil without them. Rank 0 calls it.
func (p *Probes) Report() *output.ProbesReport {
	if p == nil {
		return nil
	}
	return &p.stats
}
