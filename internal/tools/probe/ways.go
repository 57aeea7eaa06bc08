package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jacobi/internal/tools/probe/gpu"
)

// way is one way to do some work.
type way struct {
	name  string
	once  func() (time.Duration, error)   // does the work and returns its time
	check func() (off float64, err error) // compares the result with what it must be
}

// row is the measurement of a way.
type row struct {
	name               string
	gpus               float64 // over which the work is divided
	seconds, rate, off float64
	ofCopy             float64 // rate divided by that of the device's copy
	step, speedUp      float64 // against the row before; against the first one, or against one GPU
}

// wayTries is how often a way runs; the fastest run counts.
const wayTries = 5

// measure measures ways of work that reads or writes a number of bytes.
func measure(ctx context.Context, bytes int64, ways []way) (rows []row, err error) {
	for _, w := range ways {
		took, err := gpu.Fastest(ctx, wayTries, w.once)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		off, err := w.check()
		if err != nil {
			return nil, fmt.Errorf("%s: WRONG: %w", w.name, err)
		}
		s := took.Seconds()
		rows = append(rows, row{name: w.name, seconds: s, rate: float64(bytes) / s, off: off})
	}
	return rows, nil
}

// relate fills in the rest of the rows of one device, whose copy reads and writes a number of bytes a second.
func relate(rows []row, copies float64) []row {
	for i := range rows {
		r := &rows[i]
		r.step, r.speedUp, r.ofCopy = rows[max(0, i-1)].seconds/r.seconds, rows[0].seconds/r.seconds, r.rate/copies
	}
	return rows
}

// over measures ways on the first 1, 2, 4... and all of n GPUs.
func over(n int, on func(gpus int) ([]row, error)) (all []row, err error) {
	single := map[string]float64{} // seconds of one GPU
	for _, gpus := range gpu.Counts(n) {
		rows, err := on(gpus)
		if err != nil {
			return nil, fmt.Errorf("over %d GPUs: %w", gpus, err)
		}
		for _, r := range rows {
			if gpus == 1 {
				single[r.name] = r.seconds
			}
			r.gpus, r.speedUp = float64(gpus), single[r.name]/r.seconds
			all = append(all, r)
		}
	}
	return all, nil
}

// showRows adds a table of rows, and their rates to the figures, with names that begin with the given words.
func (r *Result) showRows(title, figures string, rows []row) {
	t := newTable(title, "GPUs|way|time:s|rate:B/s|step:x|speed-up:x|efficiency:%|of copy:%|error")
	for _, w := range rows {
		name := figures
		if w.gpus > 0 {
			name = fmt.Sprint(figures, w.gpus)
		}
		t.row(w.gpus, w.name, w.seconds, w.rate, w.step, w.speedUp, w.speedUp/w.gpus, w.ofCopy, w.off)
		r.add(w.rate, "B/s", "%s.%s", name, strings.NewReplacer(" ", "_", ",", "").Replace(w.name))
	}
	r.show(t)
}
