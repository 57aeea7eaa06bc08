package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"jacobi/solver"
)

// Report is what a run tells of itself: the contents of report.json.
type Report struct {
	Name    string          `json:"name"`   // run.name, may be empty
	RunID   string          `json:"run_id"` //
	Version string          `json:"version"`
	Config  json.RawMessage `json:"config"` // merged from flags, environment, file and defaults, without secrets
	Problem string          `json:"problem"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended"`
	Mesh    MeshReport      `json:"mesh"`
	Depth   int             `json:"depth"` // rows of a halo
	Ranks   []RankReport    `json:"ranks"` // in rank order

	Sweeps        int               `json:"sweeps"`
	MaxIterations int               `json:"max_iterations"`
	Tolerance     float64           `json:"tolerance"`
	StopReason    solver.StopReason `json:"stop_reason"`
	Converged     bool              `json:"converged"`
	Norm          *float64          `json:"norm"`     // L2, of the last sweep; null if there was none
	Decisive      *DecisiveReport   `json:"decisive"` // null unless a norm ended the run

	Accuracy    *AccuracyReport `json:"accuracy"` // null if no sweep was done
	Times       TimesReport     `json:"times"`
	GLUPS       float64         `json:"glups"`        // 10^9 points of the mesh updated a second
	FieldSHA256 string          `json:"field_sha256"` // of the interior rows, in order, little-endian
	Dir         string          `json:"dir"`          // of the files: output.dir
	// Files are what was written, the report itself last and without its size and hash. Files with other hashes are not
	// of this run.
	Files  []FileReport `json:"files"`
	Failed []FileFault  `json:"failed,omitempty"` // what could not be written

	ResumedAfter int               `json:"resumed_after,omitempty"` // sweeps that an earlier run had done
	Checkpoints  *CheckpointReport `json:"checkpoints,omitempty"`   // nil if none were to be written
}

// DecisiveReport is the norm that ended the run: by the delayed check, mostly not that of the last sweep.
type DecisiveReport struct {
	Sweep int     `json:"sweep"` // counted from 0, as in the history
	Norm  float64 `json:"norm"`
}

// FileReport is a file that the run wrote; configs.Stdout stands for standard output.
type FileReport struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// FileFault is a file that the run could not write.
type FileFault struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// AccuracyReport estimates how far the field is from the solution of the discrete equations; see docs/numerics.md.
type AccuracyReport struct {
	Error      float64 `json:"error"`      // at the worst point
	Attainable float64 `json:"attainable"` // the error that rounding in the field's type leaves at best
	Norm       float64 `json:"norm"`       // at which that error is reached: a tolerance below it is of no use
	Scale      float64 `json:"scale"`      // the largest error that the run had, at its start or by rounding
	Better     string  `json:"better"`     // the type that attains the tolerance where this one does not; may be empty
}

// CheckpointReport tells of the checkpoints that the run wrote.
type CheckpointReport struct {
	Place   string  `json:"place"` // directory, or "nats:" and a bucket
	Written int     `json:"written"`
	Failed  int     `json:"failed"`
	Sweeps  int     `json:"sweeps"`               // done before the newest one; 0 if there is none
	Bytes   int64   `json:"bytes"`                // of the newest one
	Write   float64 `json:"write_seconds"`        // of the newest one, from its copy on, beside the sweeps
	Copies  float64 `json:"copies_total_seconds"` // for which the sweeps stood still on rank 0
}

// MeshReport is a solver.Mesh.
type MeshReport struct {
	NX       int    `json:"nx"`
	NY       int    `json:"ny"`
	DType    string `json:"dtype"`
	Periodic bool   `json:"periodic"` // top and bottom
}

// NewMeshReport returns the report of m.
func NewMeshReport(m solver.Mesh) MeshReport {
	return MeshReport{NX: m.NX, NY: m.NY, DType: m.DType.String(), Periodic: m.Periodic}
}

// RankReport is one rank's part.
type RankReport struct {
	Rank    int    `json:"rank"`
	Node    string `json:"node"` // what tells nodes apart
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Device  string `json:"device"`
	Kernel  string `json:"kernel"`  // of the CPU; "" on a GPU
	Threads int    `json:"threads"` // of the CPU that are kept busy
	Stripe  [2]int `json:"stripe"`  // rows [lo, hi)

	GPU *GPUReport `json:"gpu,omitempty"` // nil if the CPU swept

	MemoryBytes int64 `json:"memory_bytes"` // fields, halos, scratch and, on the CPU, the copy for checkpoints
	RSSBytes    int64 `json:"rss_bytes"`    // resident memory of the process, by the operating system's

	Transports map[string]LinkReport `json:"transports"` // by side, "top" and "bottom", as far as there is a neighbour

	// how the rank's rows came to output.dir: WroteFile, or WroteNATS and a host
	Output string `json:"output,omitempty"`
	// OutputError says why the rank's rows are not in the field's file.
	OutputError string `json:"output_error,omitempty"`

	// What the host did in the sweeps, as in solver.Times; docs/gpus.md says what it means on a GPU.
	Compute  float64  `json:"compute_seconds"`
	HaloWait *float64 `json:"halo_wait_seconds"` // nil where a GPU waits itself
	NormWait float64  `json:"norm_wait_seconds"`
}

// The ways of a rank's rows to output.dir.
const (
	WroteFile = "file"
	WroteNATS = "nats to " // the host follows
)

// GPUReport is the GPU that swept a rank's stripe.
type GPUReport struct {
	Index    int    `json:"index"` // CUDA's, among those that CUDA_VISIBLE_DEVICES left
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	PCIBusID string `json:"pci_bus_id"`
	Why      string `json:"why"`             // it was chosen
	Cores    string `json:"cores,omitempty"` // near it, to which the rank was pinned, as "0-3,8"; none if it was not
}

// LinkReport is one side of a rank.
type LinkReport struct {
	Neighbour int    `json:"neighbour"` // rank
	Transport string `json:"transport"`
	Why       string `json:"why"`

	NATS *NATSReport `json:"nats,omitempty"` // of a link over NATS
}

// NATSReport tells what befell a link over NATS, in frames, and what it costs.
type NATSReport struct {
	Asked      uint64 `json:"asked"`      // requests for frames that did not come
	Resent     uint64 `json:"resent"`     // sent again for the neighbour
	Duplicates uint64 `json:"duplicates"` // that came again
	Refused    uint64 `json:"refused"`    // that did not belong to the link, or came damaged
	Lost       uint64 `json:"lost"`       // that the client could not send
	Dropped    uint64 `json:"dropped"`    // that came faster than they were taken
	MostBytes  int64  `json:"most_bytes"` // bound of the memory for frames that wait, or are kept for the neighbour
}

// TimesReport is in seconds, as rank 0 saw them.
type TimesReport struct {
	Setup  float64 `json:"setup_seconds"`  // until all ranks were ready to sweep
	Sweeps float64 `json:"sweeps_seconds"` // first sweep to last norm
	Output float64 `json:"output_seconds"` // hash, field and picture
}

// GLUPS returns 10^9 points updated a second, points being NX * NY; 0 when no time has passed.
func GLUPS(m solver.Mesh, sweeps int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(m.NX) * float64(m.NY) * float64(sweeps) / seconds / 1e9
}

// Fault says in one error which files could not be written; nil if all could.
func (r Report) Fault() error {
	var errs []error
	for _, f := range r.Failed {
		errs = append(errs, fmt.Errorf("%s is not written: %s", filepath.Join(r.Dir, f.Name), f.Error))
	}
	return errors.Join(errs...)
}

// With returns r with itself among its files.
func (r Report) With(name string) Report {
	r.Files = append(slices.Clone(r.Files), FileReport{Name: name})
	return r
}

// Encode returns what report.json holds.
func (r Report) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteReport writes r to p and closes it.
func WriteReport(p Partial, r Report) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	if err := finish(p, b); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
