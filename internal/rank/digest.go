package rank

import (
	"context"
	"slices"
	"time"

	"jacobi/internal/output"
	"jacobi/internal/roster"
	"jacobi/internal/trace"
)

// digest passes the hash of the field from rank to rank and returns it on rank 0.
func (r *ready) digest(ctx context.Context, view output.View) (*output.Digest, error) {
	defer r.tracer.Phase(trace.PhaseHash, time.Now())
	withFile := r.Config.Output.Field != ""
	var first, last []byte
	var err error
	if withFile {
		if first, last, err = r.boundaryRows(ctx, view); err != nil {
			return nil, err
		}
	}
	state, err := r.team.Relay(ctx, "hash", func(state []byte) ([]byte, error) {
		d, err := output.NewDigest(state)
		if err != nil {
			return nil, err
		}
		if withFile && r.id.Rank == 0 {
			d.Begin(r.fieldFormat(), first)
		}
		var file *output.Format
		if withFile {
			file = new(r.fieldFormat())
		}
		if err := d.AddRows(ctx, view, file); err != nil {
			return nil, err
		}
		if withFile && r.id.Rank == r.id.Size-1 {
			d.End(r.fieldFormat(), last)
		}
		return d.State()
	})
	if err != nil || r.id.Rank != 0 {
		return nil, err
	}
	return output.NewDigest(state)
}

// boundaryRows returns row 0 on the first rank and row NY-1 on the last, or nil for a row of a stripe. If these rows
// are periodic, each of the two ranks gets its row from the other.
func (r *ready) boundaryRows(ctx context.Context, view output.View) (first, last []byte, err error) {
	if first, err = view.Boundary(ctx, 0); err != nil {
		return nil, nil, err
	}
	if last, err = view.Boundary(ctx, view.Mesh.NY-1); err != nil {
		return nil, nil, err
	}
	if !view.Mesh.PeriodicRows() || r.id.Size == 1 {
		return first, last, nil
	}
	switch r.id.Rank {
	case 0:
		if err = r.sendRow(ctx, r.id.Size-1, rowTag, last); err == nil {
			first, err = r.receiveRow(ctx, r.id.Size-1, rowTag)
		}
	case r.id.Size - 1:
		row := first
		if last, err = r.receiveRow(ctx, 0, rowTag); err == nil {
			err = r.sendRow(ctx, 0, rowTag, row)
		}
	}
	return first, last, err
}

// The names of messages that carry a boundary row, and the first row of a stripe.
const (
	rowTag      = "boundary row"
	firstRowTag = "first row"
)

// sendRow sends a row to another rank, in several messages if it is long.
func (r *ready) sendRow(ctx context.Context, to int, tag string, row []byte) error {
	for part := range slices.Chunk(row, roster.MaxMessage) {
		if err := r.team.Send(ctx, to, tag, part); err != nil {
			return err
		}
	}
	return nil
}

// receiveRow receives what sendRow has sent.
func (r *ready) receiveRow(ctx context.Context, from int, tag string) (row []byte, err error) {
	for len(row) < r.layout.Mesh.RowBytes() {
		part, err := r.team.Recv(ctx, from, tag)
		if err != nil {
			return nil, err
		}
		row = append(row, part...)
	}
	return row, nil
}
