package tasks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"jacobi/internal/compute/cpu"
	"jacobi/internal/observe/output"
	"jacobi/internal/tools/soak"
)

// makeReference computes, on rank 0, the hashes of the rows after all sweeps, and gives them to all ranks. The CPU
// computes them with all of the rank's cores, one time. stopped says that the rank was told to stop meanwhile.
func (s *soaking) makeReference(ctx context.Context) (stopped bool, err error) {
	var table []byte
	if s.Comm.Self().Rank == 0 {
		if table, err = s.computeReference(ctx); err != nil {
			return false, fmt.Errorf("reference: %w", err)
		}
	}
	if table, err = s.Comm.Broadcast(ctx, "reference", table); err != nil { // signs of life bound the wait
		return false, err
	}
	mesh := s.Layout.Mesh
	if s.reference, err = tableOf(mesh.Interior(), table); len(table) > 0 {
		return false, err
	}
	return true, nil
}

// computeReference returns the hashes of the rows; nil if the rank was told to stop.
func (s *soaking) computeReference(ctx context.Context) (table []byte, err error) {
	f, err := s.openAlone(ctx, false, cpu.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	sweeps, stop, begin := s.Config.Solver.MaxIterations, s.StopRequested(), time.Now()
	watch := newWatch(s, nil, soak.Working{Of: sweeps})
	complete, err := f.sweep(ctx, s.Problem, sweeps, func(sweeps int) bool {
		watch.see(sweeps)
		return stop()
	})
	if err != nil || !complete {
		return nil, err
	}
	took := time.Since(begin).Seconds()
	hashes, err := hashRows(ctx, f.backend, f.layout, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	digest, err := output.NewDigest(nil)
	if err != nil {
		return nil, err
	}
	view := output.View{Mesh: f.layout.Mesh, Stripe: f.layout.Stripe, Rows: f.backend}
	if err := digest.AddRows(ctx, view, nil); err != nil {
		return nil, err
	}
	field, _ := digest.Sums()
	s.tell(soak.Event{Event: "reference", Reference: &soak.Reference{Host: s.Comm.Self().Host, Sweeps: sweeps,
		Seconds: took, FieldSHA256: field}})
	return hashes.table(), nil
}
