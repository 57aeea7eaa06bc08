package rank

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"jacobi/internal/cpu"
	"jacobi/internal/output"
	"jacobi/internal/soak"
)

// makeReference computes, on rank 0, the hashes of the rows after all sweeps, and gives them to all ranks. The CPU
// computes them with all of the rank's cores, one time. stopped says that the rank was told to stop meanwhile.
func (s *soaking) makeReference(ctx context.Context) (stopped bool, err error) {
	var table []byte
	if s.id.Rank == 0 {
		if table, err = s.computeReference(ctx); err != nil {
			return false, fmt.Errorf("reference: %w", err)
		}
	}
	if table, err = s.team.Broadcast(ctx, "reference", table); err != nil { // signs of life bound the wait
		return false, err
	}
	mesh := s.layout.Mesh
	if s.reference, err = tableOf(mesh.Interior(), table); len(table) > 0 {
		return false, err
	}
	return true, nil
}

// computeReference returns the hashes of the rows; nil if the rank was told to stop.
func (s *soaking) computeReference(ctx context.Context) ([]byte, error) {
	open := &closers{log: s.Log}
	defer open.close()
	f, err := s.openAloneOnCPU(ctx, cpu.Options{}, open)
	if err != nil {
		return nil, err
	}
	sweeps, stop, begin := s.Config.Solver.MaxIterations, s.stopRequested(), time.Now()
	watch := newSoakWatch(s, nil, soak.Working{Of: sweeps})
	complete, err := f.sweep(ctx, s.problem, sweeps, func(sweeps int) bool {
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
	s.tell(soak.Event{Event: "reference", Reference: &soak.Reference{Host: s.team.Self().Host, Sweeps: sweeps,
		Seconds: took, FieldSHA256: field}})
	return hashes.table(), nil
}
