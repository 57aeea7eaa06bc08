package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/base/awake"
	"jacobi/internal/net/roster"
	"jacobi/internal/run/setup"
	"jacobi/solver"
)

// The transports between ranks with GPUs that need no link.
const (
	transportPeer = "peer memory" // CUDA IPC: a rank writes rows into the window of another
	transportSelf = "device memory"
)

// windows are the windows of other ranks into which the GPU of this rank writes, and how rows travel without a link.
type windows struct {
	neighbours   [2]*cuda.Window // by side; nil where the rows use a link
	all          []*cuda.Window  // by rank, nil for the own one; empty unless every rank reaches every other
	deviceMemory [2]halo.Info    // by side: how rows travel without a link; empty where they use one
	whyLink      [2]string       // by side: why a rank with a GPU uses a link and not peer memory
}

// windowAnswer is what a rank tells all others: its offer, and then which windows it could not map.
type windowAnswer struct {
	Offer  json.RawMessage `json:"offer,omitempty"`
	Fault  string          `json:"fault,omitempty"`  // why there is no offer
	Faults map[int]string  `json:"faults,omitempty"` // by rank
}

// openWindows opens this rank's window and maps those of other ranks. All ranks call it and agree on which pairs write
// into each other's memory.
func (r *equipped) openWindows(ctx context.Context) (w windows, err error) {
	onGPU := func(g roster.Group) bool { return g.First.Device == string(setup.GPU) }
	if r.id.Size == 1 && r.sweepsOnGPU() {
		self := halo.Info{Transport: transportSelf, Why: "the rank is its own neighbour"}
		w.deviceMemory = [2]halo.Info{self, self}
	}
	if r.id.Size == 1 || r.Config.Halo.Transport == string(halo.ModeNATS) ||
		!slices.ContainsFunc(r.comm.Groups(), onGPU) {
		return w, nil
	}
	ctx, cancel := awake.WithTimeout(ctx, r.Config.Halo.Timeout)
	defer cancel()
	offers, err := r.tellAll(ctx, "windows", r.offerWindow())
	if err != nil {
		return w, err
	}
	mine, mapped := windowAnswer{Faults: map[int]string{}}, map[int]*cuda.Window{}
	for _, other := range r.wanted() {
		if offers[other].Offer == nil {
			mine.Faults[other] = offers[other].Fault
		} else if window, err := r.method.About().GPU.MapWindow(offers[other].Offer); err != nil {
			mine.Faults[other] = err.Error()
		} else {
			mapped[other] = window
		}
	}
	answers, err := r.tellAll(ctx, "mapped windows", mine)
	if err != nil {
		return w, errors.Join(err, closeWindows(mapped, nil))
	}
	return r.chooseWindows(mapped, answers)
}

// offerWindow returns this rank's offer; none if the CPU sweeps.
func (r *equipped) offerWindow() (a windowAnswer) {
	gpu := r.method.About().GPU
	if gpu == nil {
		return a
	}
	err := gpu.OpenWindow(r.id.Size)
	if err == nil {
		a.Offer, err = gpu.OfferWindow(r.id.Rank)
	}
	if err != nil {
		a.Fault = err.Error()
	}
	return a
}

// wanted returns the ranks whose windows this rank maps: its neighbours or, with multigrid if all can be reached, all
// others.
func (r *divided) wanted() (ranks []int) {
	if !r.sweepsOnGPU() {
		return nil
	}
	neighbour := map[int]bool{}
	for _, to := range r.beside() {
		neighbour[to.Rank] = true
	}
	self := r.comm.Self()
	for _, m := range r.comm.Members() {
		if m.Rank != self.Rank && (r.ReachAll || neighbour[m.Rank]) && noWindow(self, m) == "" {
			ranks = append(ranks, m.Rank)
		}
	}
	return ranks
}

// noWindow returns why a rank with a GPU cannot share memory with rank m; "" if they may try.
func noWindow(self, m roster.Member) string {
	switch {
	case m.Device != string(setup.GPU):
		return fmt.Sprintf("rank %d has no GPU", m.Rank)
	case !roster.InOneMemory(self, m):
		return fmt.Sprintf("rank %d is on another node, or in another container", m.Rank)
	}
	return ""
}

// reachAll reports whether all ranks write into each other's windows if the driver lets them. All ranks find the same.
func reachAll(members []roster.Member, transport string) bool {
	return len(members) > 1 && transport != string(halo.ModeNATS) &&
		!slices.ContainsFunc(members, func(m roster.Member) bool { return noWindow(members[0], m) != "" })
}

// chooseWindows keeps of the windows that this rank has mapped those of ranks that have mapped its own, and closes the
// others.
func (r *equipped) chooseWindows(mapped map[int]*cuda.Window, answers []windowAnswer) (w windows, err error) {
	keep := map[*cuda.Window]bool{}
	for side, to := range r.beside() {
		if !r.sweepsOnGPU() {
			break
		}
		if err = r.decideSide(&w, side, to, answers[r.id.Rank].Faults[to.Rank],
			answers[to.Rank].Faults[r.id.Rank]); err != nil {
			break
		}
		if w.deviceMemory[side].Transport != "" {
			w.neighbours[side], keep[mapped[to.Rank]] = mapped[to.Rank], true
		}
	}
	whole := r.ReachAll
	for _, a := range answers {
		whole = whole && len(a.Faults) == 0
	}
	if whole {
		w.all = make([]*cuda.Window, len(answers))
		for other, p := range mapped {
			w.all[other], keep[p] = p, true
		}
	}
	return w, errors.Join(err, closeWindows(mapped, keep))
}

// decideSide decides how the rows of one side travel. mine and theirs are the faults that the two ranks have found, ""
// for none.
func (r *run) decideSide(w *windows, side solver.Side, to roster.Member, mine, theirs string) error {
	fault := mine
	if fault == "" && theirs != "" {
		fault = fmt.Sprintf("rank %d: %s", to.Rank, theirs)
	}
	if f := noWindow(r.comm.Self(), to); f != "" {
		fault = f
	}
	if fault == "" {
		w.deviceMemory[side] = halo.Info{Transport: transportPeer, Why: "same node, device memory mapped by CUDA IPC"}
		return nil
	}
	if r.Config.Halo.Transport == string(halo.ModeP2P) && to.Device == string(r.device()) {
		return fmt.Errorf("halo.transport \"p2p\": no peer memory between ranks %d and %d: %s", r.id.Rank, to.Rank,
			fault)
	}
	w.whyLink[side] = fault
	r.Log.Sugar().Infof("no peer memory with rank %d: %s", to.Rank, fault)
	return nil
}

// closeWindows closes all but some windows.
func closeWindows(mapped map[int]*cuda.Window, keep map[*cuda.Window]bool) error {
	var errs []error
	for _, p := range mapped {
		if !keep[p] {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// beside yields the sides that have a neighbour, each with the entry of that neighbour.
func (r *divided) beside() iter.Seq2[solver.Side, roster.Member] {
	return func(yield func(solver.Side, roster.Member) bool) {
		for side, has := range r.layout.Neighbour {
			if has && !yield(solver.Side(side), r.neighbour(solver.Side(side))) {
				return
			}
		}
	}
}

// tellAll gives every rank what each of them says, by rank.
func (r *run) tellAll(ctx context.Context, what string, mine windowAnswer) (all []windowAnswer, err error) {
	return roster.DecideOn(ctx, r.comm, what, mine,
		func(all []windowAnswer) ([]windowAnswer, error) { return all, nil })
}
