package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"jacobi/cuda"
	"jacobi/halo"
	"jacobi/internal/awake"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// zonePeers are the zones of other ranks that a rank of multigrid writes into.
type zonePeers struct {
	neighbours [2]*cuda.ZonePeer // by side; nil where rows go over a link
	all        []*cuda.ZonePeer  // by rank, nil for the own one; empty unless every rank reaches every other
}

func (p zonePeers) none() bool { return p.neighbours == [2]*cuda.ZonePeer{} && len(p.all) == 0 }

// zoneAnswer is what a rank tells all others: its offer, and then which zones it could not map.
type zoneAnswer struct {
	Offer  json.RawMessage `json:"offer,omitempty"`
	Fault  string          `json:"fault,omitempty"`  // why there is no offer
	Faults map[int]string  `json:"faults,omitempty"` // by rank
}

// reachable reports whether ranks may write into each other's zones: both sweep on GPUs under one kernel.
func reachable(a, b roster.Member) bool {
	return a.Device == "cuda" && b.Device == "cuda" && roster.InOneMemory(a, b)
}

// reachAll reports whether all ranks may write into each other's zones. All ranks find the same.
func (l *laidOut) reachAll() bool {
	members := l.team.Members()
	for _, m := range members {
		if !reachable(members[0], m) {
			return false
		}
	}
	return l.Config.Halo.Transport != string(halo.ModeNATS) && len(members) > 1
}

// wanted returns the ranks whose zones this rank maps: its neighbours, or, if all can be reached, all others.
func (l *laidOut) wanted() []int {
	self, members := l.team.Self(), l.team.Members()
	if l.Config.Halo.Transport == string(halo.ModeNATS) {
		return nil
	}
	want := map[int]bool{}
	for side, has := range l.layout.Neighbour {
		if has {
			want[l.neighbour(solver.Side(side)).Rank] = true
		}
	}
	all := l.reachAll()
	var ranks []int
	for _, m := range members {
		if m.Rank != self.Rank && (all || want[m.Rank]) && reachable(self, m) {
			ranks = append(ranks, m.Rank)
		}
	}
	return ranks
}

// openZones opens this rank's zone and maps those of other ranks. All ranks of a run with multigrid call it and agree
// on which pairs write into each other's memory.
func (o *opened) openZones(ctx context.Context) (rows peerRows, peers zonePeers, err error) {
	onGPU := func(g roster.Group) bool { return g.First.Device == "cuda" }
	if o.id.Size == 1 || o.Config.Halo.Transport == string(halo.ModeNATS) ||
		!slices.ContainsFunc(o.team.Groups(), onGPU) {
		return rows, peers, nil
	}
	ctx, cancel := awake.WithTimeout(ctx, o.Config.Halo.Timeout)
	defer cancel()
	offers, err := o.tellAll(ctx, "zones", o.offerZone())
	if err != nil {
		return rows, peers, err
	}
	mine, mapped := zoneAnswer{Faults: map[int]string{}}, map[int]*cuda.ZonePeer{}
	for _, r := range o.wanted() {
		p, err := o.mapZone(offers[r])
		if err != nil {
			mine.Faults[r] = err.Error()
			continue
		}
		mapped[r] = p
	}
	answers, err := o.tellAll(ctx, "mapped zones", mine)
	if err != nil {
		return rows, peers, errors.Join(err, closeZones(mapped, nil))
	}
	peers, err = o.chooseZones(&rows, mapped, answers)
	return rows, peers, err
}

// offerZone returns this rank's offer; none if the CPU sweeps.
func (o *opened) offerZone() (a zoneAnswer) {
	if o.levels.gpu == nil {
		return a
	}
	err := o.levels.gpu.OpenZone(o.id.Size)
	if err == nil {
		a.Offer, err = o.levels.gpu.OfferZone(o.id.Rank)
	}
	if err != nil {
		a.Fault = err.Error()
	}
	return a
}

// mapZone maps the zone that another rank offers.
func (o *opened) mapZone(a zoneAnswer) (*cuda.ZonePeer, error) {
	if a.Offer == nil {
		return nil, errors.New(a.Fault)
	}
	return o.levels.gpu.OpenZonePeer(a.Offer)
}

// chooseZones keeps of the zones that this rank has mapped those of ranks that have mapped its own, and closes the
// others. It says in rows how the rows of each side travel.
func (o *opened) chooseZones(rows *peerRows, mapped map[int]*cuda.ZonePeer, answers []zoneAnswer) (peers zonePeers,
	err error) {
	fault := func(a, b int) string { // between two ranks, either may have found it
		if f := answers[a].Faults[b]; f != "" {
			return fmt.Sprintf("rank %d: %s", a, f)
		}
		if f := answers[b].Faults[a]; f != "" {
			return fmt.Sprintf("rank %d: %s", b, f)
		}
		return ""
	}
	keep := map[*cuda.ZonePeer]bool{}
	err = o.eachNeighbour(func(side solver.Side, to roster.Member) error {
		why := fault(o.id.Rank, to.Rank)
		if o.levels.gpu == nil {
			return nil
		}
		if f := o.noPeer(to); f != "" {
			why = f
		}
		if why == "" {
			peers.neighbours[side] = mapped[to.Rank]
			keep[mapped[to.Rank]] = true
			rows.direct[side] = halo.Info{Transport: transportPeer, Why: "same node, device memory mapped by CUDA IPC"}
			return nil
		}
		return o.withoutPeer(rows, side, to, why)
	})
	if o.reachAll() {
		whole := true
		for a := range answers {
			for b := range a {
				whole = whole && fault(a, b) == ""
			}
		}
		if whole {
			peers.all = make([]*cuda.ZonePeer, len(answers))
			for r, p := range mapped {
				peers.all[r], keep[p] = p, true
			}
		}
	}
	return peers, errors.Join(err, closeZones(mapped, keep))
}

// closeZones closes all but some zones.
func closeZones(mapped map[int]*cuda.ZonePeer, keep map[*cuda.ZonePeer]bool) error {
	var errs []error
	for _, p := range mapped {
		if !keep[p] {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// tellAll gives every rank what each of them says, by rank.
func (j *joined) tellAll(ctx context.Context, what string, mine zoneAnswer) (all []zoneAnswer, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	parts, err := j.team.Gather(ctx, what, data)
	if err != nil {
		return nil, err
	}
	if j.id.Rank == 0 {
		whole := make([]json.RawMessage, len(parts))
		for r, p := range parts {
			whole[r] = p
		}
		if data, err = json.Marshal(whole); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	if data, err = j.team.Broadcast(ctx, what, data); err != nil {
		return nil, err
	}
	if err = json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return all, nil
}
