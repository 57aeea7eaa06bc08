package scaling

import (
	"fmt"
	"time"

	"jacobi/internal/observe/output"
	"jacobi/solver"
)

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

	FieldSHA256 string    `json:"field_sha256"`
	Transports  []Pair    `json:"transports"` // of all pairs of neighbours
	Devices     []string  `json:"devices"`    // by rank
	Kernel      string    `json:"kernel"`     // of the CPU; "" on GPUs
	Threads     int       `json:"threads"`    // CPU threads that a rank keeps busy
	Host        string    `json:"host"`       // of the launcher, like Processor and Cores
	Processor   string    `json:"processor"`
	Cores       int       `json:"cores"`
	Version     string    `json:"version"`
	Started     time.Time `json:"started"` // start of the fastest run
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
		if r.FieldSHA256 != best.FieldSHA256 || r.Sweeps != best.Sweeps {
			return Record{}, fmt.Errorf("run %d gave %d sweeps to the field %s, run 1 %d to %s: they must be the same",
				i+1, r.Sweeps, r.FieldSHA256, runs[0].Sweeps, runs[0].FieldSHA256)
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
		Traffic: Traffic(best.GLUPS, dtype.Size()), FieldSHA256: best.FieldSHA256, Version: best.Version,
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
	if r.FieldSHA256 != other.FieldSHA256 {
		return fmt.Errorf("%d ranks gave the field %s, %d gave %s: they must be the same", r.Ranks, r.FieldSHA256,
			other.Ranks, other.FieldSHA256)
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
