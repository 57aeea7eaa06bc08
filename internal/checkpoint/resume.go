package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/roster"
	"jacobi/solver"
)

// Team is what checkpoints need of a *roster.Team.
type Team interface {
	Self() roster.Member
	Send(ctx context.Context, to int, tag string, data []byte) error
	Recv(ctx context.Context, from int, tag string) ([]byte, error)
	Gather(ctx context.Context, name string, data []byte) ([][]byte, error)
	Broadcast(ctx context.Context, name string, data []byte) ([]byte, error)
}

// ResumeOptions say from where a run goes on, and what it is.
type ResumeOptions struct {
	Team     Team
	Place    string            // see configs.Checkpoint
	Conn     *nats.Conn        // for a bucket; may be nil
	Fields   map[string]string // configs.FieldKeys
	Solver   configs.Solver
	Layout   solver.Layout    // of this rank
	Boundary solver.RowSource // the initial field, for rows 0 and NY-1
	Log      *zap.Logger
}

// State is a checkpoint from which all ranks go on.
type State struct {
	Set   string
	Field *Field       // for Backend.Load; the caller closes it
	Start solver.Start // for solver.Options
	Norms []float64    // of all sweeps before; on rank 0 alone
}

// offer is a checkpoint that rank 0 found, for all ranks to look at.
type offer struct {
	Use      bool          `json:"use,omitempty"` // the one before is in order: go on from it
	Set      string        `json:"set,omitempty"`
	Manifest string        `json:"manifest,omitempty"`
	Start    *solver.Start `json:"start,omitempty"`
}

// Resume finds the newest checkpoint that is in order and opens it. All ranks call it and come to the same one; they
// share the reading of its parts. A broken one is named in the log, and the one before it is taken.
func Resume(ctx context.Context, o ResumeOptions) (*State, error) {
	store, only, err := Open(ctx, o.Place, o.Conn)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*State, error) { return nil, fmt.Errorf("go on from %s: %w", store, err) }
	if o.Team.Self().Rank == 0 {
		state, err := o.lead(ctx, store, only)
		if err != nil {
			return fail(err)
		}
		return state, nil
	}
	state, err := o.follow(ctx, store)
	if err != nil {
		return fail(err)
	}
	return state, nil
}

// lead is rank 0's part.
func (o *ResumeOptions) lead(ctx context.Context, store Store, only string) (*State, error) {
	found, faults, err := List(ctx, store, only)
	if err != nil {
		return nil, err
	}
	for _, f := range faults {
		o.Log.Warn("a checkpoint cannot be used: " + f)
	}
	for i, f := range found {
		if i == 0 {
			if err := f.CheckFields(o.Fields); err != nil {
				return nil, err
			}
		}
		state, fault, err := o.offer(ctx, store, f)
		if err != nil {
			return nil, err
		}
		if fault == nil {
			return state, o.tell(ctx, offer{Use: true})
		}
		o.Log.Warn("a checkpoint cannot be used: " + f.Set + ": " + fault.Error())
		faults = append(faults, f.Set+": "+fault.Error())
	}
	if len(faults) == 0 {
		return nil, errors.New("there is no checkpoint")
	}
	return nil, fmt.Errorf("no checkpoint is in order: %s", strings.Join(faults, "; "))
}

// offer lets all ranks look at f. A fault says that it is broken.
func (o *ResumeOptions) offer(ctx context.Context, store Store, f Found) (state *State, fault, err error) {
	norms, fault := readNorms(ctx, store, f)
	if fault != nil {
		return nil, fault, nil
	}
	if err := f.CheckEnd(o.Solver, norms); err != nil {
		return nil, nil, err
	}
	data, err := f.Encode()
	if err != nil {
		return nil, nil, err
	}
	start := solver.Start{Sweeps: f.Sweeps, Norms: norms[max(0, len(norms)-solver.StopNorms):]}
	if err := o.tell(ctx, offer{Set: f.Set, Manifest: string(data), Start: &start}); err != nil {
		return nil, nil, err
	}
	state, fault = o.look(ctx, store, f, start)
	words, err := o.Team.Gather(ctx, "checkpoint looked at", word(fault))
	if err == nil {
		fault = firstFault(words)
	}
	if err != nil || fault != nil {
		if state != nil {
			err = errors.Join(err, state.Field.Close())
		}
		return nil, fault, err
	}
	state.Norms = norms
	return state, nil, nil
}

func (o *ResumeOptions) tell(ctx context.Context, what offer) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = o.Team.Broadcast(ctx, "checkpoint", data)
	return err
}

// follow is the other ranks' part: they look at what rank 0 offers.
func (o *ResumeOptions) follow(ctx context.Context, store Store) (state *State, err error) {
	defer func() {
		if err != nil && state != nil {
			err = errors.Join(err, state.Field.Close())
			state = nil
		}
	}()
	for {
		data, err := o.Team.Broadcast(ctx, "checkpoint", nil)
		if err != nil {
			return state, err
		}
		var what offer
		if err := json.Unmarshal(data, &what); err != nil {
			return state, fmt.Errorf("offer of rank 0: %w", err)
		}
		if what.Use {
			return state, nil
		}
		if state != nil {
			if err := state.Field.Close(); err != nil {
				return nil, err
			}
			state = nil
		}
		m, fault := DecodeManifest([]byte(what.Manifest))
		if fault == nil {
			state, fault = o.look(ctx, store, Found{what.Set, m}, *what.Start)
		}
		if _, err := o.Team.Gather(ctx, "checkpoint looked at", word(fault)); err != nil {
			return state, err
		}
	}
}

// look reads this rank's share of the parts of f, and opens what its stripe needs.
func (o *ResumeOptions) look(ctx context.Context, store Store, f Found, start solver.Start) (*State, error) {
	self := o.Team.Self()
	where := func(err error) error { return fmt.Errorf("rank %d on %s: %w", self.Rank, self.Host, err) }
	if f.Mesh != o.Layout.Mesh || f.Magnitude != o.Layout.Magnitude {
		return nil, where(fmt.Errorf("mesh %+v with magnitude %d, want %+v with %d", f.Mesh, f.Magnitude, o.Layout.Mesh,
			o.Layout.Magnitude))
	}
	for i := self.Rank; i < len(f.Parts); i += self.Size {
		if err := verifyPart(ctx, store, f, f.Parts[i]); err != nil {
			return nil, where(err)
		}
	}
	field, err := openField(ctx, store, f, o.Layout.Held(), o.Boundary)
	if err != nil {
		return nil, where(err)
	}
	return &State{Set: f.Set, Field: field, Start: start}, nil
}

func verifyPart(ctx context.Context, store Store, f Found, p Part) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	file, err := store.Open(ctx, f.Set, p)
	if err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	defer file.Close()
	if err := f.verify(p, file); err != nil {
		return fmt.Errorf("%s is broken: %w", p.File, err)
	}
	return nil
}

func readNorms(ctx context.Context, store Store, f Found) ([]float64, error) {
	if err := verifyPart(ctx, store, f, f.Norms); err != nil {
		return nil, err
	}
	file, err := store.Open(ctx, f.Set, f.Norms)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return f.readNorms(file)
}

// word is what a rank says of a checkpoint it looked at: nothing if it is in order.
func word(fault error) []byte {
	if fault == nil {
		return nil
	}
	return []byte(fault.Error())
}

func firstFault(words [][]byte) error {
	for _, w := range words {
		if len(w) > 0 {
			return errors.New(string(w))
		}
	}
	return nil
}
