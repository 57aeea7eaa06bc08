package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/solver"
)

// ResumeOptions describe the run that resumes and the place of its checkpoints.
type ResumeOptions struct {
	Comm     *roster.Comm
	Place    string     // see configs.Checkpoint
	Conn     *nats.Conn // for a bucket; may be nil
	Problem  Problem
	Solver   configs.Solver
	Layout   solver.Layout    // of this rank
	Arrays   int              // see Manifest
	Boundary solver.RowSource // the initial field, for rows 0 and NY-1
	Log      *zap.Logger
}

// State is a checkpoint from which all ranks resume.
type State struct {
	Set   string
	Field *Field       // for Backend.Load; the caller closes it
	Start solver.Start // for solver.Options
	Norms []float64    // of all sweeps before the checkpoint; on rank 0 only
	First float64      // the first of them; 0 if there is none
}

// offer is rank 0's message to the other ranks: a checkpoint for them to inspect, or the decision to use it.
type offer struct {
	Use      bool          `json:"use,omitempty"` // resume from the checkpoint of the previous offer
	Set      string        `json:"set,omitempty"`
	Manifest string        `json:"manifest,omitempty"`
	Start    *solver.Start `json:"start,omitempty"`
	First    float64       `json:"first,omitempty"` // as in State
}

const offerName = "checkpoint"

// Resume finds the newest intact checkpoint and opens it. All ranks call Resume and agree on the checkpoint; each of
// them verifies a share of the parts. A broken checkpoint is named in the log, and the next older one is tried.
func Resume(ctx context.Context, o ResumeOptions) (*State, error) {
	store, only, err := Open(ctx, o.Place, o.Conn)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*State, error) { return nil, fmt.Errorf("go on from %s: %w", store, err) }
	if o.Comm.Self().Rank == 0 {
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

// lead runs on rank 0: it offers checkpoints, the newest first, until one is intact.
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
			if err := f.CheckProblem(o.Problem); err != nil {
				return nil, err
			}
		}
		state, fault, err := o.offer(ctx, store, f)
		if err != nil {
			return nil, err
		}
		if fault == nil {
			_, err := roster.BroadcastOn(ctx, o.Comm, offerName, offer{Use: true})
			return state, err
		}
		o.Log.Warn("a checkpoint cannot be used: " + f.Set + ": " + fault.Error())
		faults = append(faults, f.Set+": "+fault.Error())
	}
	if len(faults) == 0 {
		return nil, errors.New("there is no checkpoint")
	}
	return nil, fmt.Errorf("no checkpoint is intact: %s", strings.Join(faults, "; "))
}

// offer has all ranks inspect f. A fault means that f is broken.
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
	start := solver.Start{Iterations: f.Sweeps, Norms: norms[max(0, len(norms)-solver.StopNorms):]}
	first := 0.0
	if len(norms) > 0 {
		first = norms[0]
	}
	_, err = roster.BroadcastOn(ctx, o.Comm, offerName,
		offer{Set: f.Set, Manifest: string(data), Start: &start, First: first})
	if err != nil {
		return nil, nil, err
	}
	state, fault = o.inspect(ctx, store, f, start, first)
	fault, err = firstFault(ctx, o.Comm, "checkpoint looked at", fault)
	if err != nil || fault != nil {
		if state != nil {
			err = errors.Join(err, state.Field.Close())
		}
		return nil, fault, err
	}
	state.Norms = norms
	return state, nil, nil
}

// follow runs on the other ranks: it inspects the checkpoints that rank 0 offers.
func (o *ResumeOptions) follow(ctx context.Context, store Store) (state *State, err error) {
	defer func() {
		if err != nil && state != nil {
			err = errors.Join(err, state.Field.Close())
			state = nil
		}
	}()
	for {
		message, err := roster.BroadcastOn(ctx, o.Comm, offerName, offer{})
		if err != nil {
			return state, err
		}
		if message.Use {
			return state, nil
		}
		if state != nil {
			if err := state.Field.Close(); err != nil {
				return nil, err
			}
			state = nil
		}
		m, fault := DecodeManifest([]byte(message.Manifest))
		if fault == nil {
			state, fault = o.inspect(ctx, store, Found{message.Set, m}, *message.Start, message.First)
		}
		if _, err := firstFault(ctx, o.Comm, "checkpoint looked at", fault); err != nil {
			return state, err
		}
	}
}

// inspect verifies this rank's share of the parts of f, and opens the parts that its stripe needs.
func (o *ResumeOptions) inspect(ctx context.Context, store Store, f Found, start solver.Start,
	first float64) (*State, error) {
	self := o.Comm.Self()
	where := func(err error) error { return fmt.Errorf("rank %d on %s: %w", self.Rank, self.Host, err) }
	if f.Mesh != o.Layout.Mesh || f.Magnitude != o.Layout.Magnitude {
		return nil, where(fmt.Errorf("mesh %+v with magnitude %d, want %+v with %d", f.Mesh, f.Magnitude, o.Layout.Mesh,
			o.Layout.Magnitude))
	}
	if f.Arrays != o.Arrays {
		return nil, where(fmt.Errorf("%d arrays in a part, want %d: it was written with another solver.acceleration",
			max(1, f.Arrays), max(1, o.Arrays)))
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
	return &State{Set: f.Set, Field: field, Start: start, First: first}, nil
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

// firstFault tells rank 0 a rank's fault, if there is one. It returns the first fault of all ranks on rank 0, and the
// fault of the rank itself elsewhere. All ranks call it.
func firstFault(ctx context.Context, t *roster.Comm, name string, fault error) (first, err error) {
	text := ""
	if fault != nil {
		text = fault.Error()
	}
	faults, err := roster.GatherOn(ctx, t, name, text)
	for _, f := range faults {
		if f != "" {
			return errors.New(f), err
		}
	}
	return fault, err
}
