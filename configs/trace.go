package configs

// Trace says which part of a run output.trace shows. A pass is up to halo.depth sweeps. With multigrid, cycles stand
// for passes and for sweeps.
type Trace struct {
	Passes int `key:"passes"` // at each end of the run
	From   int `key:"from"`   // passes that begin with sweep From or a later one,
	To     int `key:"to"`     // and before sweep To; 0: to the end
}

// maxTracePasses bounds the memory of a rank for its part of the trace, and the size of the file.
const maxTracePasses = 10000

func (v *validator) trace(t Trace) {
	if t.Passes < 1 || t.Passes > maxTracePasses {
		v.fault("trace.passes %d: 1 to %d are allowed", t.Passes, maxTracePasses)
	}
	v.atLeast("trace.from", t.From, 0)
	v.atLeast("trace.to", t.To, 0)
	if t.To > 0 && t.To <= t.From {
		v.fault("trace.to %d: must be more than trace.from (%d), or 0 for the end of the run", t.To, t.From)
	}
}
