package cuda

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda/driver"
)

const (
	copyBytes  = 1 << 30 // size of one copy, far more than a cache holds; less where memory is short
	copyTries  = 20
	copyPasses = 4 // copies in a try
)

// CopyRate measures how fast the GPU copies its own memory with cuMemcpyDtoD, in bytes read and written a second, and
// returns the fastest of several tries. The rate is the roofline of a pass of one sweep. CopyRate allocates up to 2 GiB
// of the GPU's memory and frees it.
func CopyRate(ctx context.Context, gpu *driver.Device) (float64, error) {
	c, err := gpu.Retain(driver.ScheduleAuto)
	if err != nil {
		return 0, fmt.Errorf("copy rate of %v: %w", gpu, err)
	}
	if err := c.Bind(); err != nil {
		return 0, errors.Join(fmt.Errorf("copy rate of %v: %w", gpu, err), c.Close())
	}
	r := &copyRun{context: c}
	rate, err := r.measure(ctx)
	if err := errors.Join(err, r.close(), c.Unbind(), c.Close()); err != nil {
		return 0, fmt.Errorf("copy rate of %v: %w", gpu, err)
	}
	return rate, nil
}

// copyRun holds the resources of a measurement.
type copyRun struct {
	context *driver.Context
	closers []func() error
}

func (r *copyRun) close() error {
	var errs []error
	for _, f := range r.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func (r *copyRun) measure(ctx context.Context) (rate float64, err error) {
	free, _, err := r.context.Memory()
	if err != nil {
		return 0, err
	}
	bytes := min(copyBytes, free/4)
	var field [2]driver.DevicePtr
	for i := range field {
		p, err := r.context.Alloc(bytes)
		if err != nil {
			return 0, err
		}
		r.closers = append(r.closers, func() error { return r.context.Free(p) })
		field[i] = p
	}
	stream, err := r.context.NewStream(0)
	if err != nil {
		return 0, err
	}
	r.closers = append(r.closers, stream.Close)
	var mark [2]*driver.Event
	for i := range mark {
		if mark[i], err = r.context.NewEvent(true); err != nil {
			return 0, err
		}
		r.closers = append(r.closers, mark[i].Close)
	}
	for i := range field {
		if err := stream.Fill(field[i], 1, int(bytes)); err != nil {
			return 0, err
		}
	}
	for range copyTries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := mark[0].Record(stream); err != nil {
			return 0, err
		}
		for range copyPasses {
			if err := stream.CopyOnDevice(field[0], field[1], int(bytes)); err != nil {
				return 0, err
			}
		}
		if err := errors.Join(mark[1].Record(stream), mark[1].Synchronize()); err != nil {
			return 0, err
		}
		took, err := driver.Elapsed(mark[0], mark[1])
		if err != nil {
			return 0, err
		}
		rate = max(rate, 2*copyPasses*float64(bytes)/took.Seconds())
	}
	return rate, nil
}
