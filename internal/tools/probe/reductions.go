package probe

import (
	"context"
	"fmt"
	"strings"

	"jacobi/internal/tools/probe/reduction"
)

// Numbers of values of the part reductions.
const (
	fewValues  = 1 << 22
	manyValues = 1 << 28
	cpuValues  = 1 << 25 // on the CPU, besides fewValues
)

// reductionsReport is the data of the part reductions.
type reductionsReport struct {
	GPUs   []stepsReport    `json:"gpus"`
	Over   []reduction.Over `json:"over_gpus"`
	NoNATS string           `json:"no_nats,omitempty"`
	CPU    []reduction.Step `json:"cpu"`
}

// stepsReport holds the steps of a GPU.
type stepsReport struct {
	Index int              `json:"index"` // CUDA's
	Steps []reduction.Step `json:"steps"`
}

// reductions measures the sum of an array within each GPU, over several GPUs, and on the CPU.
func reductions(ctx context.Context, m *Machine) (r Result, err error) {
	d := reductionsReport{GPUs: []stepsReport{}, Over: []reduction.Over{}}
	var text strings.Builder
	for i := range m.GPUs {
		report := stepsReport{Index: m.GPUs[i].Index}
		for _, n := range []int{fewValues, manyValues} {
			for _, kind := range reduction.Types() {
				found, err := reduction.OnGPU(ctx, &m.GPUs[i], kind, n)
				if err != nil {
					return r, err
				}
				report.Steps = append(report.Steps, found...)
				r.addSteps(&text, fmt.Sprintf("GPU %d", report.Index), fmt.Sprintf("gpu%d", report.Index), found)
			}
		}
		d.GPUs = append(d.GPUs, report)
	}
	kind := reduction.Type(m.DType)
	if len(m.GPUs) > 0 {
		post, hangUp, err := sumsPost(ctx, m)
		if err != nil {
			return r, err
		}
		defer hangUp()
		if post == nil {
			d.NoNATS = "a run of one rank has no server"
		}
		if d.Over, err = reduction.OverGPUs(ctx, m.GPUs, kind, manyValues, post); err != nil {
			return r, err
		}
		r.addOver(&text, d)
	} else {
		r.NotRun = fmt.Sprintf("no GPU: %v; the CPU was measured", m.NoGPU)
	}
	for _, n := range []int{fewValues, cpuValues} {
		for _, k := range reduction.Types() {
			if n == cpuValues && k != kind {
				continue
			}
			found, err := reduction.OnCPU(ctx, k, n)
			if err != nil {
				return r, err
			}
			d.CPU = append(d.CPU, found...)
			r.addSteps(&text, "the CPU", "cpu", found)
		}
	}
	r.Data, r.Text = d, text.String()
	return r, nil
}

// addSteps adds steps of one device, type and number of values to the text and the figures.
func (r *Result) addSteps(text *strings.Builder, device, key string, steps []reduction.Step) {
	rows := "step\ttime\tGB/s\tstep\tin all\tof copy\terror\n"
	for _, s := range steps {
		rows += fmt.Sprintf("%s\t%s\t%s\t%.2f\t%.2f\t%.0f%%\t%.1g\n", s.Name, seconds(s.Seconds), digits(s.Rate/1e9),
			s.StepUp, s.SpeedUp, 100*s.OfCopy, s.Error)
		r.add(s.Rate, "B/s", "reductions.%s.%s.%d.%s", key, s.Type, s.Values, strings.ReplaceAll(s.Name, " ", "_"))
	}
	fmt.Fprintf(text, "  %s, %d values of %s\n%s", device, steps[0].Values, steps[0].Type, table(rows))
}

// addOver adds the sums over several GPUs to the text and the figures.
func (r *Result) addOver(text *strings.Builder, d reductionsReport) {
	rows := "GPUs\tgathered by\ttime\tGB/s\tspeed-up\tefficiency\terror\n"
	for _, o := range d.Over {
		way := o.Gather
		if o.Exact {
			way += ", exact"
		}
		rows += fmt.Sprintf("%d\t%s\t%s\t%s\t%.2f\t%.0f%%\t%.1g\n", o.GPUs, way, seconds(o.Seconds),
			digits(o.Rate/1e9), o.SpeedUp, 100*o.Efficiency, o.Error)
		r.add(o.Rate, "B/s", "reductions.over%d.%s", o.GPUs, strings.ReplaceAll(way, ", ", "_"))
	}
	if d.NoNATS != "" {
		rows += "not gathered by NATS: " + d.NoNATS + "\n"
	}
	fmt.Fprintf(text, "  over GPUs, %d values of %s\n%s", d.Over[0].Values, d.Over[0].Type, table(rows))
}

// sumsPost connects to the server of the run to gather sums; post is nil without one. hangUp ends the connection.
func sumsPost(ctx context.Context, m *Machine) (post *reduction.Post, hangUp func(), err error) {
	if m.Dial == nil {
		return nil, func() {}, nil
	}
	conn, hangUp, err := m.Dial(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	return &reduction.Post{Conn: conn, Subject: m.Echo(m.Node) + ".sums"}, hangUp, nil
}
