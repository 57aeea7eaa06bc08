package probe

import (
	"fmt"
	"maps"
	"slices"
)

// Result is what a part found on one node. A part returns what it has together with an error.
type Result struct {
	Data     any      // for JSON, under the name of the part
	Text     string   // for a terminal, in lines of at most 100 columns
	Findings []string // what is slow or missing, one sentence each
	Figures  []Figure // that bounds can be given for
	NotRun   string   // why the part, or some of it, did not run here; "" if all of it did
}

// Figure is one number of a result, named by words with dots between, as in copies.gpu0.to_device.pinned.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // B/s, s, GLUP/s or a plain number: ""
}

// add adds a figure whose name is formatted.
func (r *Result) add(value float64, unit, format string, args ...any) {
	r.Figures = append(r.Figures, Figure{Name: fmt.Sprintf(format, args...), Value: value, Unit: unit})
}

// find adds a finding.
func (r *Result) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// skip says that some of the part did not run.
func (r *Result) skip(format string, args ...any) {
	if r.NotRun != "" {
		r.NotRun += "; "
	}
	r.NotRun += fmt.Sprintf(format, args...)
}

// fair is the least part of the median of its peers that a device reaches without being called slow.
const fair = 0.9

// compare adds a finding for each GPU whose rate is well below the median of all. Rates are in bytes a second.
func (r *Result) compare(what string, rates map[int]float64) {
	r.compareIn(what, rates, rate)
}

// compareIn is compare for values of another unit.
func (r *Result) compareIn(what string, values map[int]float64, text func(float64) string) {
	if len(values) < 2 {
		return
	}
	typical := median(slices.Collect(maps.Values(values)))
	for _, i := range slices.Sorted(maps.Keys(values)) {
		if values[i] < fair*typical {
			r.find("GPU %d: %s reach %s; the median of the GPUs is %s.", i, what, text(values[i]), text(typical))
		}
	}
}

// median returns the upper median of values, at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
