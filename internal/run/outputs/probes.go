package outputs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"jacobi/configs"
	"jacobi/internal/observe/output"
	"jacobi/solver"
)

// probes record the values of points in a file. Each rank reads its own points while the sweeps wait, and rank 0 writes
// them beside the sweeps. Values that cannot be written are only a warning.
type probes struct {
	*Outputs
	points
	lines []string             // of each point, what stands between the number of sweeps and the value
	file  *output.Growing      // rank 0 only; nil before the first values
	stats *output.ProbesReport // of the report of the run; rank 0 counts
}

// newProbes returns the probes of a run; nil if the configuration names none.
func (o *Outputs) newProbes() (*probes, error) {
	p := &probes{Outputs: o}
	list, err := configs.ParseProbes(o.Config.Output.Probes, o.Layout.Mesh)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	p.points = pointsOf(list)
	hx, hy := o.Problem.Spacings()
	for _, probe := range list {
		for _, point := range probe.Points {
			p.lines = append(p.lines, fmt.Sprintf("%s,%d,%d,%s,%s", probe.Name, point.IX, point.IY,
				shortest(float64(point.IX)*hx, 64), shortest(float64(point.IY)*hy, 64)))
		}
	}
	p.stats = &output.ProbesReport{Every: o.Config.Output.ProbesInterval().Iterations, Points: p.count}
	o.Report.Probes = p.stats
	return p, nil
}

func shortest(v float64, bits int) string { return strconv.FormatFloat(v, 'g', -1, bits) }

func (p *probes) take(ctx context.Context, at solver.Sample) (rest func(context.Context) error, err error) {
	values, err := p.read(ctx, p.view())
	return func(ctx context.Context) error { return p.record(ctx, at.Iterations, values) }, err
}

// record sends the values to rank 0, which writes those of all ranks. It fails only if the ranks lose each other.
func (p *probes) record(ctx context.Context, sweeps int, values []byte) error {
	all, err := p.gather(ctx, p.Outputs, values)
	if err != nil || all == nil {
		return err
	}
	var text []byte
	for i, v := range all {
		text = fmt.Appendf(text, "%d,%s,%s\n", sweeps, p.lines[i], shortest(v, 8*p.Layout.Mesh.DType.Size()))
	}
	if p.file == nil {
		f, end, err := p.place.GrowProbes(p.Start)
		if err != nil {
			p.failed(err)
			return nil
		}
		p.file = output.NewGrowing(f, end)
	}
	if _, err := p.file.Write(text); err != nil {
		p.failed(err)
		return nil
	}
	p.stats.Samples, p.stats.Error = p.stats.Samples+1, ""
	return nil
}

// failed enters why values are not written. The first of several is a warning.
func (p *probes) failed(err error) {
	if p.stats.Error == "" {
		p.Log.Sugar().Warnf("%s: values are not written, the run goes on: %v", configs.ProbesFile, err)
	}
	p.stats.Error = err.Error()
}

// finish completes the file.
func (p *probes) finish() error {
	if p.file == nil {
		return nil
	}
	if _, err := p.file.Finish(); err != nil {
		p.failed(errors.Join(err, p.file.Close()))
	}
	return nil
}

// readProbes returns, on rank 0, the values of the probes now. All ranks call it.
func (o *Outputs) readProbes(ctx context.Context) (output.Probed, error) {
	list, err := configs.ParseProbes(o.Config.Output.Probes, o.Layout.Mesh)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	p := pointsOf(list)
	own, err := p.read(ctx, o.view())
	if err != nil {
		return nil, err
	}
	values, err := p.gather(ctx, o, own)
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

// valueBytes is the size of a value that a rank sends: the place of its point, u32, and its bits, u64.
const valueBytes = 4 + 8

// read returns the values of this rank's points.
func (p points) read(ctx context.Context, view output.View) (values []byte, err error) {
	row := make([]float64, view.Mesh.NX)
	err = view.At(ctx, p.rows, func(i int, data []byte) {
		view.Mesh.DType.Decode(row, data)
		for _, q := range p.at[p.rows[i]] {
			values = binary.LittleEndian.AppendUint32(values, uint32(q.index))
			values = binary.LittleEndian.AppendUint64(values, math.Float64bits(row[q.ix]))
		}
	})
	return values, err
}

// gather returns, on rank 0, the values that all ranks have read. All ranks call it.
func (p points) gather(ctx context.Context, o *Outputs, own []byte) ([]float64, error) {
	parts, err := o.Comm.Gather(ctx, "probes", own)
	if err != nil || o.id.Rank != 0 {
		return nil, err
	}
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
