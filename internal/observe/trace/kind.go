package trace

import (
	"cmp"
	"fmt"

	"jacobi/solver"
)

// kind says what a rank does in a record: a solver.StepKind or one of those below. The values are part of the wire
// format.
type kind uint8

const (
	kindPass kind = 64 + iota // encloses the steps from a wait for halos, if there is one, to the end of Interior
	kindSend                  // halo.Link's Send
	kindReceive
	kindRoom // memory of the link for rows to send
	kindCheckpoint
	PhaseRows    // of the outputs: rows are written, averaged for the picture and, on rank 0, hashed
	PhaseResults // energy, extremes and fluxes are added over ranks
	PhaseMeshes  // waits for the solutions on coarser meshes
	PhaseHash    // the SHA-256 of the field passes from rank to rank
	PhaseReports // the reports are gathered
	PhaseHistory // rank 0 completes its files
	PhasePicture
	PhaseField
	kindEnd

	kindWork kind = 128 // and above: a solver.WorkKind
)

// valid reports whether k is a kind.
func (k kind) valid() bool {
	return solver.StepKind(k).Valid() || k >= kindPass && k < kindEnd || k >= kindWork && k.work().Valid()
}

// work returns the kind of a device's work.
func (k kind) work() solver.WorkKind { return solver.WorkKind(k - kindWork) }

// The arguments of an event as JSON, made of the number of a record, its first sweep, and its sweeps or rows.
const (
	ofSweeps   = `{"pass":%[1]d,"first_sweep":%[2]d,"sweeps":%[3]d}`
	ofPass     = `{"pass":%[1]d}`
	ofExchange = `{"exchange":%[1]d}`
	ofSum      = `{"sum":%[1]d}`
	ofCycle    = `{"cycle":%[1]d}`
	ofState    = `{"sweeps":%[2]d}`
	ofRows     = `{"rows":%[3]d}`
)

// The categories of what the report does not count.
const (
	inPass      = "pass"
	inLink      = "link"
	inOutput    = "output"
	onGPU       = "gpu_compute"
	copiedByGPU = "gpu_copy"
)

// kinds says what viewers call steps, whether these are of a level of multigrid, which arguments they have, and to
// which category they belong: "" is that of the solver's share.
var kinds = map[kind]struct {
	name     string
	level    bool
	args     string
	category string
}{
	kind(solver.StepEdges):        {"edges", false, ofSweeps, ""},
	kind(solver.StepInterior):     {"interior", false, ofSweeps, ""},
	kind(solver.StepSums):         {"sums", false, ofSweeps, ""},
	kind(solver.StepPost):         {"send halos", false, ofExchange, ""},
	kind(solver.StepWait):         {"wait for halos", false, ofExchange, ""},
	kind(solver.StepPostNorm):     {"send sums", false, ofPass, ""},
	kind(solver.StepWaitNorm):     {"wait for norm", false, ofPass, ""},
	kind(solver.StepSave):         {"copy state", false, ofState, ""},
	kind(solver.StepSample):       {"sample", false, ofState, ""},
	kind(solver.StepDown):         {"down", true, "", ""},
	kind(solver.StepAgglomerated): {"agglomerated", true, "", ""},
	kind(solver.StepUp):           {"up", true, "", ""},
	kind(solver.StepHalos):        {"halos", true, "", ""},
	kind(solver.StepGather):       {"gather", true, "", ""},
	kind(solver.StepNorm):         {"sums", false, "", ""},
	kind(solver.StepReduce):       {"norm", false, ofSum, ""},
	kind(solver.StepCG):           {"conjugate gradients", false, "", ""},
	kind(solver.StepCycle):        {"cycle", false, ofCycle, ""},
	kind(solver.StepAggregate):    {"set up aggregates", false, "", ""},
	kindPass:                      {"pass", false, ofSweeps, inPass},
	kindSend:                      {"send", false, ofExchange, inLink},
	kindReceive:                   {"receive", false, ofExchange, inLink},
	kindRoom:                      {"room", false, ofExchange, inLink},
	kindCheckpoint:                {"write checkpoint", false, ofState, "checkpoint"},
	PhaseRows:                     {"write rows", false, "", inOutput},
	PhaseResults:                  {"results", false, "", inOutput},
	PhaseMeshes:                   {"wait for meshes", false, "", inOutput},
	PhaseHash:                     {"hash", false, "", inOutput},
	PhaseReports:                  {"gather reports", false, "", inOutput},
	PhaseHistory:                  {"history", false, "", inOutput},
	PhasePicture:                  {"picture", false, "", inOutput},
	PhaseField:                    {"field", false, "", inOutput},

	kindWork + kind(solver.WorkStripe):   {"sweep", false, ofSweeps, onGPU},
	kindWork + kind(solver.WorkEdges):    {"sweep edges", false, ofSweeps, onGPU},
	kindWork + kind(solver.WorkInterior): {"sweep interior", false, ofSweeps, onGPU},
	kindWork + kind(solver.WorkDown):     {"down", true, "", onGPU},
	kindWork + kind(solver.WorkTail):     {"tail", true, "", onGPU},
	kindWork + kind(solver.WorkUp):       {"up", true, "", onGPU},
	kindWork + kind(solver.WorkHandOn):   {"hand rows on", false, ofExchange, copiedByGPU},
	kindWork + kind(solver.WorkAwait):    {"await rows", false, ofExchange, "gpu_wait"},
	kindWork + kind(solver.WorkToPeer):   {"rows to neighbour", false, ofExchange, copiedByGPU},
	kindWork + kind(solver.WorkToHost):   {"rows to host", false, ofRows, copiedByGPU},
	kindWork + kind(solver.WorkFromHost): {"rows from host", false, ofRows, copiedByGPU},
	kindWork + kind(solver.WorkSums):     {"sums to host", false, ofSweeps, copiedByGPU},
	kindWork + kind(solver.WorkCG):       {"conjugate gradients", false, "", onGPU},
}

// name returns what viewers call a step of this kind.
func (k kind) name(level uint8) string {
	if kinds[k].level {
		return fmt.Sprintf("%s, level %d", kinds[k].name, level)
	}
	return kinds[k].name
}

// appendArgs appends the arguments of an event as JSON.
func (r record) appendArgs(b []byte) []byte {
	if args := kinds[r.Kind].args; args != "" {
		return fmt.Appendf(b, args, r.Number, r.First, r.Sweeps)
	}
	return append(b, "{}"...)
}

// category returns the part of the report that counts the step, or what else it belongs to.
func (k kind) category() string {
	return cmp.Or(kinds[k].category, categories[solver.StepKind(k).Share()])
}

var categories = map[solver.Share]string{
	solver.ShareNone:     inPass,
	solver.ShareCompute:  "compute",
	solver.ShareHaloWait: "halo_wait",
	solver.ShareNormWait: "norm_wait",
	solver.ShareSave:     "save",
	solver.ShareSample:   "sample",
}

// encloses orders kinds whose steps begin and end together.
func (k kind) encloses() int {
	switch k {
	case kind(solver.StepCycle), kindPass:
		return 0
	}
	return 1
}
