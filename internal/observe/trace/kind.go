package trace

import (
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
	kindRows
	kindResults
	kindHash
	kindReports
	kindHistory
	kindPicture
	kindField
	kindEnd

	kindWork kind = 128 // and above: a solver.WorkKind
)

// Phase is what a rank does after the sweeps.
type Phase kind

// The phases.
const (
	PhaseRows    = Phase(kindRows)    // rows are written, averaged for the picture and, on rank 0, hashed
	PhaseResults = Phase(kindResults) // energy, extremes and fluxes are added over ranks
	PhaseHash    = Phase(kindHash)    // the SHA-256 of the field passes from rank to rank
	PhaseReports = Phase(kindReports) // the reports are gathered
	PhaseHistory = Phase(kindHistory) // rank 0 completes its files
	PhasePicture = Phase(kindPicture)
	PhaseField   = Phase(kindField)
)

// valid reports whether k is a kind.
func (k kind) valid() bool {
	return solver.StepKind(k).Valid() || k >= kindPass && k < kindEnd || k >= kindWork && k.work().Valid()
}

// work returns the kind of a device's work.
func (k kind) work() solver.WorkKind { return solver.WorkKind(k - kindWork) }

// name returns what viewers call a step of this kind.
func (k kind) name(level uint8) string {
	name := names[k]
	switch k {
	case kind(solver.StepDown), kind(solver.StepAgglomerated), kind(solver.StepUp), kind(solver.StepHalos),
		kind(solver.StepGather), kindWork + kind(solver.WorkDown), kindWork + kind(solver.WorkTail),
		kindWork + kind(solver.WorkUp):
		return fmt.Sprintf("%s, level %d", name, level)
	}
	return name
}

var names = map[kind]string{
	kind(solver.StepEdges):        "edges",
	kind(solver.StepInterior):     "interior",
	kind(solver.StepSums):         "sums",
	kind(solver.StepPost):         "send halos",
	kind(solver.StepWait):         "wait for halos",
	kind(solver.StepPostNorm):     "send sums",
	kind(solver.StepWaitNorm):     "wait for norm",
	kind(solver.StepSave):         "copy state",
	kind(solver.StepSample):       "sample",
	kind(solver.StepDown):         "down",
	kind(solver.StepAgglomerated): "agglomerated",
	kind(solver.StepUp):           "up",
	kind(solver.StepHalos):        "halos",
	kind(solver.StepGather):       "gather",
	kind(solver.StepNorm):         "sums",
	kind(solver.StepReduce):       "norm",
	kind(solver.StepCG):           "conjugate gradients",
	kind(solver.StepInterpolate):  "interpolate",
	kind(solver.StepCycle):        "cycle",
	kind(solver.StepStage):        "stage",
	kindPass:                      "pass",
	kindSend:                      "send",
	kindReceive:                   "receive",
	kindRoom:                      "room",
	kindCheckpoint:                "write checkpoint",
	kindRows:                      "write rows",
	kindResults:                   "results",
	kindHash:                      "hash",
	kindReports:                   "gather reports",
	kindHistory:                   "history",
	kindPicture:                   "picture",
	kindField:                     "field",

	kindWork + kind(solver.WorkStripe):      "sweep",
	kindWork + kind(solver.WorkEdges):       "sweep edges",
	kindWork + kind(solver.WorkInterior):    "sweep interior",
	kindWork + kind(solver.WorkDown):        "down",
	kindWork + kind(solver.WorkTail):        "tail",
	kindWork + kind(solver.WorkUp):          "up",
	kindWork + kind(solver.WorkInterpolate): "interpolate",
	kindWork + kind(solver.WorkHandOn):      "hand rows on",
	kindWork + kind(solver.WorkAwait):       "await rows",
	kindWork + kind(solver.WorkToPeer):      "rows to neighbour",
	kindWork + kind(solver.WorkToHost):      "rows to host",
	kindWork + kind(solver.WorkFromHost):    "rows from host",
	kindWork + kind(solver.WorkSums):        "sums to host",
	kindWork + kind(solver.WorkCG):          "conjugate gradients",
}

// category returns the part of the report that counts the step, or what else it belongs to.
func (k kind) category() string {
	switch {
	case k >= kindWork:
		return workCategory(k.work())
	case k == kindSend || k == kindReceive || k == kindRoom:
		return "link"
	case k == kindCheckpoint:
		return "checkpoint"
	case k > kindCheckpoint:
		return "output"
	}
	return categories[solver.StepKind(k).Share()]
}

var categories = map[solver.Share]string{
	solver.ShareNone:     "pass",
	solver.ShareCompute:  "compute",
	solver.ShareHaloWait: "halo_wait",
	solver.ShareNormWait: "norm_wait",
	solver.ShareSave:     "save",
	solver.ShareSample:   "sample",
}

// workCategory returns the category of a device's work.
func workCategory(k solver.WorkKind) string {
	switch k {
	case solver.WorkAwait:
		return "gpu_wait"
	case solver.WorkHandOn, solver.WorkToPeer, solver.WorkToHost, solver.WorkFromHost,
		solver.WorkSums:
		return "gpu_copy"
	}
	return "gpu_compute"
}

// encloses orders kinds whose steps begin and end together.
func (k kind) encloses() int {
	switch k {
	case kind(solver.StepStage), kind(solver.StepCycle), kindPass:
		return 0
	}
	return 1
}

// appendArgs appends the arguments of an event as JSON.
func (r record) appendArgs(b []byte) []byte {
	switch r.Kind {
	case kindPass, kind(solver.StepEdges), kind(solver.StepInterior), kind(solver.StepSums),
		kindWork + kind(solver.WorkStripe), kindWork + kind(solver.WorkEdges), kindWork + kind(solver.WorkInterior),
		kindWork + kind(solver.WorkSums):
		return fmt.Appendf(b, `{"pass":%d,"first_sweep":%d,"sweeps":%d}`, r.Number, r.First, r.Sweeps)
	case kindWork + kind(solver.WorkToHost), kindWork + kind(solver.WorkFromHost):
		return fmt.Appendf(b, `{"rows":%d}`, r.Sweeps)
	case kind(solver.StepPost), kind(solver.StepWait), kindSend, kindReceive, kindRoom,
		kindWork + kind(solver.WorkHandOn), kindWork + kind(solver.WorkAwait), kindWork + kind(solver.WorkToPeer):
		return fmt.Appendf(b, `{"exchange":%d}`, r.Number)
	case kind(solver.StepPostNorm), kind(solver.StepWaitNorm):
		return fmt.Appendf(b, `{"pass":%d}`, r.Number)
	case kind(solver.StepReduce):
		return fmt.Appendf(b, `{"sum":%d}`, r.Number)
	case kind(solver.StepSave), kind(solver.StepSample), kindCheckpoint:
		return fmt.Appendf(b, `{"sweeps":%d}`, r.First)
	case kind(solver.StepCycle):
		return fmt.Appendf(b, `{"cycle":%d}`, r.Number)
	case kind(solver.StepStage):
		return fmt.Appendf(b, `{"stage":%d}`, r.Number)
	}
	return append(b, "{}"...)
}
