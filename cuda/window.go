package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"jacobi/cuda/driver"
	"jacobi/solver"
)

// offer is a rank's message to others on its node that lets them write into its memory.
type offer struct {
	Rank   int                `json:"rank"`
	Shape  []int              `json:"shape"` // of the memory: the same at both ranks
	Rows   solver.Stripe      `json:"rows"`  // held by the rank that offers
	Memory []driver.IPCHandle `json:"memory"`
}

// Window is the mapped memory of another rank on the same node, into which this rank writes.
type Window struct {
	context *driver.Context // nil if the memory is of this process
	rows    solver.Stripe
	memory  []driver.DevicePtr
}

// offer encodes o with handles of memory.
func (d *device) offer(o offer, memory ...driver.DevicePtr) ([]byte, error) {
	for _, m := range memory {
		h, err := d.context.IPCHandle(m)
		if err != nil {
			return nil, fmt.Errorf("offer memory to other ranks: %w", err)
		}
		o.Memory = append(o.Memory, h)
	}
	return json.Marshal(o)
}

// mapWindow maps what another rank offers, which must have a shape.
func (d *device) mapWindow(encoded []byte, shape []int, pieces int) (*Window, error) {
	var o offer
	if err := json.Unmarshal(encoded, &o); err != nil {
		return nil, fmt.Errorf("offer of memory: %w", err)
	}
	if !slices.Equal(o.Shape, shape) || len(o.Memory) != pieces {
		return nil, fmt.Errorf("memory of rank %d: %d pieces of shape %v; want %d of %v", o.Rank, len(o.Memory),
			o.Shape, pieces, shape)
	}
	w := &Window{context: d.context, rows: o.Rows}
	for _, h := range o.Memory {
		m, err := d.context.OpenIPC(h)
		if err != nil {
			_ = w.Close() // the first error counts
			return nil, fmt.Errorf("map the memory of rank %d: %w", o.Rank, err)
		}
		w.memory = append(w.memory, m)
	}
	return w, nil
}

// Close unmaps the memory.
func (w *Window) Close() error {
	if w.context == nil {
		return nil
	}
	for _, m := range w.memory {
		if err := w.context.CloseIPC(m); err != nil {
			return fmt.Errorf("unmap the memory of another rank: %w", err)
		}
	}
	return nil
}

// windows are those that an exchange uses; nil for none.
type windows []*Window

// close unmaps each of them once.
func (all windows) close() error {
	var errs []error
	closed := map[*Window]bool{nil: true}
	for _, w := range all {
		if !closed[w] {
			closed[w] = true
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}

// lastExchange is beyond the number of any exchange.
const lastExchange = 1 << 30

// releaseWords unblocks streams that wait until words of this rank's memory reach the number of an exchange.
func (d *device) releaseWords(words ...driver.DevicePtr) error {
	s, err := d.context.NewStream(0)
	if err != nil {
		return err
	}
	for _, w := range words {
		if err := s.WriteValue(w, lastExchange); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return errors.Join(s.Synchronize(), s.Close())
}
