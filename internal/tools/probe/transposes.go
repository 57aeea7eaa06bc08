package probe

import (
	"context"
	"fmt"
	"strings"

	"jacobi/internal/tools/probe/transpose"
)

// transposesReport is the data of the part transposes.
type transposesReport struct {
	Matrix transpose.Matrix   `json:"matrix"` // within a GPU
	GPUs   []kernelsReport    `json:"gpus"`
	Large  transpose.Matrix   `json:"matrix_over_gpus"`
	Over   []transpose.Over   `json:"over_gpus"`
	Small  transpose.Matrix   `json:"matrix_on_cpu"`
	CPU    []transpose.Kernel `json:"cpu"`
}

// kernelsReport holds the kernels of a GPU.
type kernelsReport struct {
	Index   int                `json:"index"` // CUDA's
	Kernels []transpose.Kernel `json:"kernels"`
}

// transposes measures the transpose of a matrix within each GPU, over several GPUs, and on the CPU.
func transposes(ctx context.Context, m *Machine) (r Result, err error) {
	value := bytesOf(m.DType)
	d := transposesReport{Matrix: transpose.Matrix{NX: 8192, NY: 8192, Value: value}, GPUs: []kernelsReport{},
		Large: transpose.Matrix{NX: 16384, NY: 12288, Value: value}, Over: []transpose.Over{},
		Small: transpose.Matrix{NX: 4096, NY: 3072, Value: value}}
	var text strings.Builder
	for i := range m.GPUs {
		found, err := transpose.OnGPU(ctx, &m.GPUs[i], d.Matrix)
		if err != nil {
			return r, err
		}
		d.GPUs = append(d.GPUs, kernelsReport{m.GPUs[i].Index, found})
		fmt.Fprintf(&text, "  GPU %d, %d x %d values of %d bytes\n", m.GPUs[i].Index, d.Matrix.NX, d.Matrix.NY, value)
		text.WriteString(kernelTable(found))
		for _, k := range found {
			r.add(k.Rate, "B/s", "transposes.gpu%d.%s", m.GPUs[i].Index, strings.ReplaceAll(k.Name, " ", "_"))
		}
	}
	if len(m.GPUs) > 0 {
		if d.Over, err = transpose.OverGPUs(ctx, m.GPUs, d.Large); err != nil {
			return r, err
		}
		fmt.Fprintf(&text, "  over GPUs, %d x %d values\n", d.Large.NX, d.Large.NY)
		rows := "GPUs\tqueues\tblocks by\ttime\tGB/s\tspeed-up\tefficiency\n"
		for _, o := range d.Over {
			rows += fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%.2f\t%.0f%%\n", o.GPUs, o.Queues, o.Way, seconds(o.Seconds),
				digits(o.Rate/1e9), o.SpeedUp, 100*o.Efficiency)
			r.add(o.Rate, "B/s", "transposes.over%d.%s", o.GPUs, o.Queues)
			if o.Way == transpose.ByHost && o.Queues == transpose.Blocking {
				r.find("%d GPUs have no access to each other's memory: blocks go through the host", o.GPUs)
			}
		}
		text.WriteString(table(rows))
	} else {
		r.NotRun = fmt.Sprintf("no GPU: %v; the CPU was measured", m.NoGPU)
	}
	if d.CPU, err = transpose.OnCPU(ctx, d.Small); err != nil {
		return r, err
	}
	fmt.Fprintf(&text, "  the CPU, %d x %d values\n", d.Small.NX, d.Small.NY)
	text.WriteString(kernelTable(d.CPU))
	for _, k := range d.CPU {
		r.add(k.Rate, "B/s", "transposes.cpu.%s", k.Name)
	}
	r.Data, r.Text = d, text.String()
	return r, nil
}

func kernelTable(all []transpose.Kernel) string {
	rows := "kernel\ttime\tGB/s\tof copy\n"
	for _, k := range all {
		rows += fmt.Sprintf("%s\t%s\t%s\t%.0f%%\n", k.Name, seconds(k.Seconds), digits(k.Rate/1e9), 100*k.OfCopy)
	}
	return table(rows)
}

// bytesOf returns the bytes of a value of grid.dtype.
func bytesOf(dtype string) int {
	if dtype == "float64" {
		return 8
	}
	return 4
}
