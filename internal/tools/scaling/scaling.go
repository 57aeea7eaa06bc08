// Package scaling turns the reports of repeated runs into the records of a benchmark: speed-up, efficiency and the
// fraction of the speed of a copy. It writes records as a table, JSON and CSV.
package scaling

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"jacobi/cuda"
	"jacobi/internal/compute/cpu"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/plan"
	"jacobi/solver"
)

// Kind is the kind of scaling: what grows with the number of ranks.
type Kind string

// The kinds.
const (
	Strong Kind = "strong" // nothing grows: the mesh is the same for any number of ranks
	Weak   Kind = "weak"   // the rows of the mesh grow, so that each rank has the same number
)

// SpeedUp returns the ratio of the speeds of ranks ranks and of 1 rank: serial/parallel for Strong, and
// ranks*serial/parallel for Weak, where the mesh is ranks times as large. serial is the time of 1 rank, and parallel
// the time of ranks ranks.
func (k Kind) SpeedUp(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return float64(ranks) * serial / parallel
	}
	return serial / parallel
}

// Efficiency returns the speed-up divided by ranks: serial/(ranks*parallel) for Strong, serial/parallel for Weak.
func (k Kind) Efficiency(serial, parallel float64, ranks int) float64 {
	if k == Weak {
		return serial / parallel
	}
	return serial / (float64(ranks) * parallel)
}

// Traffic returns the effective traffic of a speed in GLUP/s, in GB/s (10^9 bytes per second). Each update counts as
// one value read and one written, even if caches or a pass of several sweeps save traffic.
func Traffic(glups float64, valueBytes int) float64 { return 2 * float64(valueBytes) * glups }

// JSON writes the records as an array.
func JSON(records []Record) ([]byte, error) {
	b, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("records as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// CSV writes the records with the names of the JSON fields as header. A list is one cell with "; " between its
// elements. A number that was not measured is an empty cell.
func CSV(records []Record) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	var header []string
	for i := range reflect.TypeFor[Record]().NumField() {
		header = append(header, reflect.TypeFor[Record]().Field(i).Tag.Get("json"))
	}
	_ = w.Write(header) // a buffer does not fail
	for _, r := range records {
		var line []string
		for i := range header {
			line = append(line, cell(reflect.ValueOf(r).Field(i)))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// cell returns the text of a field of a Record.
func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return cell(v.Elem())
	case reflect.Slice:
		all := make([]string, v.Len())
		for i := range all {
			all[i] = cell(v.Index(i))
		}
		return strings.Join(all, "; ")
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
}

// Record is the measurement of one mesh on one number of ranks: the fastest of its runs. Times are in seconds, from the
// first sweep to the last norm. A nil pointer is a number that was not measured.
type Record struct {
	Scaling Kind      `json:"scaling"`
	Problem string    `json:"problem"`
	NX      int       `json:"nx"`
	NY      int       `json:"ny"`
	DType   string    `json:"dtype"`
	Ranks   int       `json:"ranks"`
	Sweeps  int       `json:"sweeps"`
	Depth   int       `json:"depth"`   // rows of a halo
	Seconds []float64 `json:"seconds"` // of each run

	Serial     *float64 `json:"t_s"` // seconds of 1 rank, for Weak on the mesh of 1 rank
	Parallel   float64  `json:"t_p"` // the least of Seconds
	SpeedUp    *float64 `json:"speed_up"`
	Efficiency *float64 `json:"efficiency"`

	GLUPS        float64  `json:"glups"`         // 10^9 points updated per second
	Traffic      float64  `json:"gb_s"`          // effective; see the function Traffic
	CopyRate     *float64 `json:"copy_gb_s"`     // of a copy on the devices used, bytes read and written
	CopyFraction *float64 `json:"copy_fraction"` // Traffic over CopyRate; may pass 1 if a pass does several sweeps

	FieldHash  string    `json:"field_hash"`
	Transports []Pair    `json:"transports"` // of all pairs of neighbours
	Devices    []string  `json:"devices"`    // by rank
	Kernel     string    `json:"kernel"`     // of the CPU; "" on GPUs
	Threads    int       `json:"threads"`    // CPU threads that a rank keeps busy
	Host       string    `json:"host"`       // of the launcher, like Processor and Cores
	Processor  string    `json:"processor"`
	Cores      int       `json:"cores"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started"` // start of the fastest run
}

// Pair is a pair of neighbours: Neighbour is below Rank.
type Pair struct {
	Rank      int    `json:"rank"`
	Neighbour int    `json:"neighbour"`
	Transport string `json:"transport"`
	Why       string `json:"why"`
}

// String returns the pair as "0-1 shared memory".
func (p Pair) String() string { return fmt.Sprintf("%d-%d %s", p.Rank, p.Neighbour, p.Transport) }

// NewRecord returns the record of one or more runs of the same configuration. It fails if the runs differ in their
// number of sweeps or their field, or if a run took no time.
func NewRecord(k Kind, runs []output.Report) (Record, error) {
	best, seconds := runs[0], make([]float64, len(runs))
	for i, r := range runs {
		if r.FieldHash != best.FieldHash || r.Sweeps != best.Sweeps {
			return Record{}, fmt.Errorf("run %d gave %d sweeps to the field %s, run 1 %d to %s: they must be the same",
				i+1, r.Sweeps, r.FieldHash, runs[0].Sweeps, runs[0].FieldHash)
		}
		if !(r.Times.Sweeps > 0) {
			return Record{}, fmt.Errorf("run %d took %v s for %d sweeps: too short to be measured", i+1, r.Times.Sweeps,
				r.Sweeps)
		}
		seconds[i] = r.Times.Sweeps
		if r.Times.Sweeps < best.Times.Sweeps {
			best = r
		}
	}
	dtype, err := solver.ParseDType(best.Mesh.DType)
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Scaling: k, Problem: best.Problem, NX: best.Mesh.NX, NY: best.Mesh.NY, DType: best.Mesh.DType,
		Ranks:  len(best.Ranks),
		Sweeps: best.Sweeps, Depth: best.Depth, Seconds: seconds, Parallel: best.Times.Sweeps, GLUPS: best.GLUPS,
		Traffic: Traffic(best.GLUPS, dtype.Size()), FieldHash: best.FieldHash, Version: best.Version,
		Started: best.Started,
		Kernel:  best.Ranks[0].Kernel, Threads: best.Ranks[0].Threads,
	}
	for _, r := range best.Ranks {
		rec.Devices = append(rec.Devices, r.Device)
		if l, ok := r.Transports[solver.Bottom.String()]; ok {
			rec.Transports = append(rec.Transports, Pair{r.Rank, l.Neighbour, l.Transport, l.Why})
		}
	}
	return rec, nil
}

// SameField fails unless r and other, a record of the same mesh, have the same field: ranks must not change the answer.
func (r *Record) SameField(other Record) error {
	if r.FieldHash != other.FieldHash {
		return fmt.Errorf("%d ranks gave the field %s, %d gave %s: they must be the same", r.Ranks, r.FieldHash,
			other.Ranks, other.FieldHash)
	}
	return nil
}

// Against sets the speed-up and efficiency of r against the record of one rank.
func (r *Record) Against(one Record) {
	serial := one.Parallel
	speedUp, efficiency := r.Scaling.SpeedUp(serial, r.Parallel, r.Ranks),
		r.Scaling.Efficiency(serial, r.Parallel, r.Ranks)
	r.Serial, r.SpeedUp, r.Efficiency = &serial, &speedUp, &efficiency
}

// Roofline sets the copy rate and fraction of r. rate is the speed of a copy in bytes per second, read and written.
func (r *Record) Roofline(rate float64) {
	rate /= 1e9
	fraction := r.Traffic / rate
	r.CopyRate, r.CopyFraction = &rate, &fraction
}

// CopyRates are the speeds of copies that were measured, in bytes read and written a second. The zero value holds none.
type CopyRates struct {
	known map[any]float64 // by cpuCopy, or by CUDA's index of a GPU
}

// cpuCopy holds the parameters of a copy on the CPU.
type cpuCopy struct{ bytes, threads int }

// Of returns the speed of a copy on the devices of p; 0 if ranks are on other machines, where it cannot be measured.
func (c *CopyRates) Of(ctx context.Context, p *plan.Plan) (rate float64, err error) {
	switch {
	case len(p.Here) < len(p.Names()):
		return 0, nil
	case len(p.GPUs) > 0:
		rate, err = c.ofGPUs(ctx, p)
	default:
		of := cpuCopyOf(p)
		rate, err = c.once(of, func() (float64, error) { return cpu.CopyRate(ctx, of.bytes, of.threads) })
	}
	if err != nil {
		return 0, fmt.Errorf("measure the roofline: %w", err)
	}
	return rate, nil
}

// ofGPUs returns the sum over the GPUs that ranks use.
func (c *CopyRates) ofGPUs(ctx context.Context, p *plan.Plan) (sum float64, err error) {
	counted := map[int]bool{}
	for _, choice := range p.Choices {
		i := choice.Index
		if counted[i] {
			continue
		}
		counted[i] = true
		rate, err := c.once(i, func() (float64, error) { return cuda.CopyRate(ctx, &p.GPUs[i]) })
		if err != nil {
			return 0, err
		}
		sum += rate
	}
	return sum, nil
}

// once measures a copy that has not been measured yet.
func (c *CopyRates) once(key any, measure func() (float64, error)) (rate float64, err error) {
	rate, known := c.known[key]
	if known {
		return rate, nil
	}
	if rate, err = measure(); err == nil {
		if c.known == nil {
			c.known = map[any]float64{}
		}
		c.known[key] = rate
	}
	return rate, err
}

// cpuCopyOf returns the copy on the CPU to compare with p: of a field, by the threads of all ranks.
func cpuCopyOf(p *plan.Plan) cpuCopy {
	threads := runtime.NumCPU()
	if t := p.Config.Device.Threads; t > 0 {
		threads = min(threads, len(p.Placements)*t)
	}
	return cpuCopy{bytes: p.Mesh.NY * p.Mesh.RowBytes(), threads: threads}
}

// Legend explains the columns of the table.
const Legend = `T_s, T_p: seconds in the sweeps with 1 and with p ranks. GLUP/s: 10^9 points (nx * ny) a second.
GB/s: one value read and one written per point. "of copy": GB/s over the speed of a copy on the
same devices. It may pass 100% if a pass does several sweeps (depth).`

// Definition defines speed-up and efficiency for the kind.
func (k Kind) Definition() string {
	if k == Weak {
		return "Weak scaling (rows grow with the ranks): speed-up p T_s/T_p, efficiency T_s/T_p"
	}
	return "Strong scaling (the mesh stays): speed-up T_s/T_p, efficiency T_s/(p T_p)"
}

// A line of the table has at most 100 columns.
const (
	headFormat = "%13s %5s %5s %9s %9s %8s %6s %9s %8s %7s  %s\n"
	rowFormat  = "%13s %5d %5d %9s %9.4g %8s %6s %9s %8s %7s  %s\n"
)

// Header returns the header line of the table.
func Header() string {
	return fmt.Sprintf(headFormat, "nx x ny", "ranks", "depth", "T_s", "T_p", "speed-up", "effic.", "GLUP/s", "GB/s",
		"of copy", "halos by")
}

// Row returns the line of r in the table.
func (r Record) Row() string {
	return fmt.Sprintf(rowFormat, fmt.Sprintf("%dx%d", r.NX, r.NY), r.Ranks, r.Depth, optional(r.Serial, 1, "%.4g"),
		r.Parallel,
		optional(r.SpeedUp, 1, "%.2f"), optional(r.Efficiency, 1, "%.3f"), decimals(r.GLUPS), decimals(r.Traffic),
		optional(r.CopyFraction, 100, "%.0f%%"), r.halos())
}

// optional formats a number times a factor, or "-" if there is none.
func optional(v *float64, factor float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, factor**v)
}

// decimals formats a speed with three decimals below 100, and with one from there on.
func decimals(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// halos returns one word for the transport of the halos, "mixed" if there are several.
func (r Record) halos() string {
	short := map[string]string{"shared memory": "shared", "peer memory": "peer"}
	var kinds []string
	for _, p := range r.Transports {
		kind := p.Transport
		if p.Rank == p.Neighbour {
			kind = "itself"
		} else if s, ok := short[kind]; ok {
			kind = s
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	switch kinds = slices.Compact(kinds); len(kinds) {
	case 0:
		return "none"
	case 1:
		return kinds[0]
	}
	return "mixed"
}
