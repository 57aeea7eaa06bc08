package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"jacobi/configs"
	"jacobi/halo"
	"jacobi/internal/compute/problem"
	"jacobi/internal/compute/results"
	"jacobi/solver"
)

// Report is the contents of report.json.
type Report struct {
	Name    string          `json:"name"` // run.name, may be empty
	RunID   string          `json:"run_id"`
	Version string          `json:"version"`
	Config  json.RawMessage `json:"config"` // merged from flags, environment, file and defaults, without secrets
	Problem string          `json:"problem"`
	Started time.Time       `json:"started"`
	Ended   time.Time       `json:"ended"`
	Mesh    MeshReport      `json:"mesh"`
	Setup   *problem.Setup  `json:"setup"` // the problem as it was solved
	Depth   int             `json:"depth"` // rows of a halo
	// DepthReason says why halo.depth auto took Depth; "" unless links were measured.
	DepthReason string `json:"depth_reason,omitempty"`
	// Balance says why the stripes are as they are; "" for run.balance equal.
	Balance string       `json:"balance,omitempty"`
	Ranks   []RankReport `json:"ranks"`          // those with rows, in rank order
	Idle    string       `json:"idle,omitempty"` // how many other ranks stayed idle, and why

	Method            string  `json:"method"`                  // solver.method, or what auto took
	MethodReason      string  `json:"method_reason,omitempty"` // why auto took Method
	Aggregates        int     `json:"aggregates,omitempty"`    // cycles after which aggregates took over
	Sweeps            int     `json:"sweeps"`                  // of Jacobi's method; cycles of multigrid
	MaxIterations     int     `json:"max_iterations"`
	NormEvery         int     `json:"norm_every,omitempty"` // solver.norm_every, if it is not 1
	Tolerance         float64 `json:"tolerance"`
	RelativeTolerance float64 `json:"relative_tolerance,omitempty"`
	Base              float64 `json:"base,omitempty"` // the norm to which RelativeTolerance is relative

	StopReason solver.StopReason `json:"stop_reason"`
	Converged  bool              `json:"converged"`
	Verdict    configs.Verdict   `json:"verdict"` // whether the run did what it was to do
	// Norm is that of the last sweep that has one, or after the last cycle; null without any.
	Norm *float64 `json:"norm"`
	// NormSweep is the sweep of Norm, counted from 0 as in the history, if NormEvery is not 1.
	NormSweep *int            `json:"norm_sweep,omitempty"`
	Decisive  *DecisiveReport `json:"decisive"` // null unless a norm ended the run
	// Residual is Norm as other solvers state it; absent without Norm. Where the diagonal of the equations differs
	// between points it is that of the last field, and absent with output.results: false.
	Residual *ResidualReport `json:"residual,omitempty"`

	Accuracy *AccuracyReport `json:"accuracy"` // see there for what is unknown
	Times    TimesReport     `json:"times"`
	// Results are the energy, the extremes, the fluxes and their balance; null with output.results: false.
	Results   *results.Results `json:"results"`
	GLUPS     float64          `json:"glups"`      // 10^9 points of the mesh updated per second
	FieldHash string           `json:"field_hash"` // see FieldHash
	Dir       string           `json:"dir"`        // output.dir, which has the files
	// Files are the written files. The report itself is the last one, without size and hash. A file with another hash
	// is not of this run.
	Files  []FileReport `json:"files"`
	Failed []FileFault  `json:"failed,omitempty"` // files that could not be written
	// Missing are results and arrays in the file of the field that could not be worked out.
	Missing []FileFault `json:"missing,omitempty"`

	Trace *TraceReport `json:"trace,omitempty"` // nil without output.trace

	ResumedAfter int               `json:"resumed_after,omitempty"` // sweeps done by earlier runs
	Checkpoints  *CheckpointReport `json:"checkpoints,omitempty"`   // nil if the run writes none
	Series       *SeriesReport     `json:"series,omitempty"`        // nil if the run writes none
	Probes       *ProbesReport     `json:"probes,omitempty"`        // nil if the run has none
	Probed       Probed            `json:"probed,omitempty"`
	ProbeErrors  Probed            `json:"probe_errors,omitempty"` // that the mesh leaves in Probed, if known
}

// Probed are the values of the probes at the end of a run, by the name of the probe, in the order of its points. What
// is no number is nil.
type Probed map[string][]*float64

// DecisiveReport is the norm that ended the run. The check is delayed, so this is usually not the norm of the last
// sweep.
type DecisiveReport struct {
	Sweep int     `json:"sweep"` // counted from 0, as in the history
	Norm  float64 `json:"norm"`
}

// ResidualReport is the residual b - A u over the points that sweeps update. A is the matrix of the discrete equations
// in the units of the source, and b has the source, the slopes and the values of the points around.
type ResidualReport struct {
	Norm     float64  `json:"norm"`               // ‖b - A u‖, the 2-norm
	Relative *float64 `json:"relative,omitempty"` // ‖b - A u‖/‖b‖; absent without a relative tolerance
}

// NewResidual returns the residual whose update has this norm, in equations with this diagonal; base is the norm of the
// update of the field 0, or 0 if it is not known. An update is the residual divided by the diagonal.
func NewResidual(norm, base, diagonal float64) *ResidualReport {
	r := &ResidualReport{Norm: norm * diagonal}
	if base > 0 {
		r.Relative = new(norm / base)
	}
	return r
}

// FileReport is a file that the run wrote; configs.Stdout stands for standard output.
type FileReport struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// TraceReport says what output.trace shows.
type TraceReport struct {
	Passes  int    `json:"passes"`          // passes, or cycles of multigrid, from trace.from to trace.to
	Dropped int    `json:"dropped"`         // of these, missing between the first and the last trace.passes ones
	Error   string `json:"error,omitempty"` // why the file is not written; the run is as good without it
}

// FileFault is a file that the run could not write.
type FileFault struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// AccuracyReport says how far the field is from the solution of the discrete equations, at the worst point; see
// docs/numerics.md.
type AccuracyReport struct {
	Error      *float64 `json:"error"`                 // about; null if it is unknown
	Uncertain  bool     `json:"uncertain,omitempty"`   // Error may be far too small: coefficients differ too much
	Why        string   `json:"why,omitempty"`         // why Error is null
	Rounding   bool     `json:"rounding"`              // the norm is not above what rounding may contribute to it
	ByRounding bool     `json:"by_rounding,omitempty"` // Error is what rounding alone may leave
	// Mesh is what the mesh leaves; nil where the run does not tell.
	Mesh *MeshErrorReport `json:"mesh,omitempty"`
}

// MeshErrorReport says how far the solution of the discrete equations is from that of infinitely fine meshes, at the
// worst of the places where the fields of several meshes are compared; see docs/numerics.md.
type MeshErrorReport struct {
	Error   *float64 `json:"error"`             // about; null if it is unknown
	Why     string   `json:"why,omitempty"`     // why Error is null
	Differs float64  `json:"differs,omitempty"` // by how much the field on half of the mesh differs
	Meshes  [][2]int `json:"meshes,omitempty"`  // points of the coarser meshes, the finest first
}

// CheckpointReport describes the checkpoints that the run wrote.
type CheckpointReport struct {
	Place   string  `json:"place"` // a directory, or "nats:" and a bucket
	Written int     `json:"written"`
	Failed  int     `json:"failed"`
	Sweeps  int     `json:"sweeps"`               // done before the newest one; 0 if there is none
	Bytes   int64   `json:"bytes"`                // of the newest one
	Write   float64 `json:"write_seconds"`        // from copy to seal of the newest one, while the sweeps go on
	Copies  float64 `json:"copies_total_seconds"` // for which copies delayed the sweeps of rank 0
}

// SeriesReport describes the series of fields that the run wrote. These files are not among Report.Files.
type SeriesReport struct {
	Every   int    `json:"every"`   // sweeps or cycles from one field to the next, the last one apart
	Files   string `json:"files"`   // their names, with * for the number of sweeps
	Written int    `json:"written"` // by this run
	Failed  int    `json:"failed"`
	Sweeps  int    `json:"sweeps"`          // of the newest file; 0 if there is none
	Index   string `json:"index,omitempty"` // the file that lists them for ParaView; "" if there is none
	Error   string `json:"error,omitempty"` // of the newest file that could not be written
}

// ProbesReport describes the values of points that the run recorded. Their file is not among Report.Files.
type ProbesReport struct {
	Every   int    `json:"every,omitempty"` // sweeps or cycles from one sample to the next; 0: only the end
	Points  int    `json:"points"`
	Samples int    `json:"samples"`         // that were written, by this run
	Error   string `json:"error,omitempty"` // why the newest values are not written
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
	return MeshReport{NX: m.NX, NY: m.NY, DType: m.DType.String(), Periodic: m.PeriodicRows()}
}

// RankReport describes one rank.
type RankReport struct {
	Rank    int    `json:"rank"`
	Node    string `json:"node"` // identifies the node; equal for ranks of one node
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Device  string `json:"device"`
	Kernel  string `json:"kernel"`  // of the CPU; "" on a GPU
	Threads int    `json:"threads"` // CPU threads that the rank keeps busy
	Stripe  [2]int `json:"stripe"`  // rows [lo, hi)

	GPU *GPUReport `json:"gpu,omitempty"` // nil if the CPU swept

	MemoryBytes int64 `json:"memory_bytes"` // fields, halos, scratch and, on the CPU, the copy for checkpoints
	RSSBytes    int64 `json:"rss_bytes"`    // resident memory of the process according to the operating system

	Transports map[string]LinkReport `json:"transports"` // by side, "top" and "bottom"; none without a neighbour

	// RefusedMessages counts what the rank received over NATS that was not sealed for this run.
	RefusedMessages uint64 `json:"refused_messages,omitempty"`

	// Output is how the rank's rows reached output.dir: WroteFile, or WroteNATS and a host.
	Output string `json:"output,omitempty"`
	// OutputError says why the rank's rows are not in the field's file.
	OutputError string `json:"output_error,omitempty"`
	// Missing says, by the names of outputs besides the field, why the rank has no part in them.
	Missing map[string]string `json:"missing,omitempty"`

	// The host's times during the sweeps, as in solver.Times. docs/hardware.md explains their meaning on a GPU.
	Compute  float64  `json:"compute_seconds"`
	HaloWait *float64 `json:"halo_wait_seconds"` // nil if the GPU itself waits for halos
	NormWait float64  `json:"norm_wait_seconds"`
}

// The ways by which a rank's rows reach output.dir.
const (
	WroteFile = "file"
	WroteNATS = "nats to " // the host follows
)

// GPUReport is the GPU that swept a rank's stripe.
type GPUReport struct {
	Index    int    `json:"index"` // CUDA's, among the devices in CUDA_VISIBLE_DEVICES
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	PCIBusID string `json:"pci_bus_id"`
	Why      string `json:"why"`             // the reason for the choice
	Cores    string `json:"cores,omitempty"` // near the GPU, to which the rank was pinned, as "0-3,8"; "" if not pinned
}

// LinkReport is one side of a rank.
type LinkReport struct {
	Neighbour int    `json:"neighbour"` // rank
	Transport string `json:"transport"`
	Why       string `json:"why"`

	Traffic *TrafficReport `json:"traffic,omitempty"` // nil if there was no exchange

	NATS   *halo.NATSStats   `json:"nats,omitempty"`   // nil unless the link uses NATS
	Direct *halo.DirectStats `json:"direct,omitempty"` // nil unless the link uses TCP
}

// TimesReport holds times in seconds, measured by rank 0.
type TimesReport struct {
	// Setup is until all ranks were ready to sweep, without Regions and the coarser meshes that come before.
	Setup  float64 `json:"setup_seconds"`
	Meshes float64 `json:"meshes_seconds,omitempty"` // waiting for the solutions on coarser meshes
	// Regions is for the solutions for single regions, which give values of those that float, and the matrix.
	Regions float64 `json:"regions_seconds,omitempty"`
	Sweeps  float64 `json:"sweeps_seconds"` // from the first sweep to the last norm
	Output  float64 `json:"output_seconds"` // hash, field and picture
	// Samples is how long the sweeps waited for files that are written while they go on.
	Samples float64 `json:"samples_seconds,omitempty"`
}

// GLUPS returns how many 10^9 points are updated per second, at NX * NY points a sweep. It returns 0 if seconds is not
// positive.
func GLUPS(m solver.Mesh, sweeps int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(m.NX) * float64(m.NY) * float64(sweeps) / seconds / 1e9
}

// Fault returns an error that names all files that could not be written and what else is missing, or nil.
func (r Report) Fault() error {
	var errs []error
	for _, f := range r.Failed {
		errs = append(errs, fmt.Errorf("%s is not written: %s", filepath.Join(r.Dir, f.Name), f.Error))
	}
	for _, f := range r.Missing {
		errs = append(errs, fmt.Errorf("no %s: %s", f.Name, f.Error))
	}
	return errors.Join(errs...)
}

// With returns a copy of r that lists the report itself, called name, among its files.
func (r Report) With(name string) Report {
	r.Files = append(slices.Clone(r.Files), FileReport{Name: name})
	return r
}

// Encode returns the contents of report.json.
func (r Report) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return append(b, '\n'), nil
}

// WriteReport writes r to f and closes it. If it fails because the disk is full, it can be called again.
func WriteReport(f File, r Report) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	if err := write(f, b); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// TrafficReport is what went through a link, or over peer memory, during the sweeps.
type TrafficReport struct {
	Exchanges uint64 `json:"exchanges"`
	Bytes     uint64 `json:"bytes"` // of rows, both ways
	*LinkTime        // nil where no host took part, as with peer memory
}

// LinkTime is how long the exchanges of a link took in seconds, all together, as one of its two ranks saw them.
type LinkTime struct {
	CopyOut float64 `json:"copy_out_seconds"` // edges were copied out of the field
	Send    float64 `json:"send_seconds"`     // the rank handed its rows over
	Wait    float64 `json:"wait_seconds"`     // the rank waited for the neighbour's rows
	CopyIn  float64 `json:"copy_in_seconds"`  // the neighbour's rows were copied into the field
}
