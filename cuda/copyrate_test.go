package cuda

import (
	"context"
	"errors"
	"math"
	"testing"

	"jacobi/cuda/driver"
)

// CopyRate returns a finite positive rate for each GPU and frees its memory.
func TestGPUCopyRate(t *testing.T) {
	devices, err := need(t).Devices()
	if err != nil {
		t.Fatal(err)
	}
	for i := range devices {
		c, err := devices[i].Retain(driver.ScheduleAuto) // so that the memory of a context does not count
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Bind(); err != nil {
			t.Fatal(err)
		}
		var free [3]int64
		var rate float64
		for k := range free { // the driver may keep memory after the first copy
			if k > 0 {
				if rate, err = CopyRate(t.Context(), &devices[i]); err != nil || !(rate > 0) || math.IsInf(rate, 0) {
					t.Fatalf("%v: %v, %v", &devices[i], rate, err)
				}
				if err := c.Bind(); err != nil { // CopyRate leaves the thread without a context
					t.Fatal(err)
				}
			}
			if free[k], _, err = c.Memory(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%v: %.0f GB/s", &devices[i], rate/1e9)
		if free[2] < free[1] {
			t.Errorf("%v: a copy took %d bytes and kept them", &devices[i], free[1]-free[2])
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		if _, err := CopyRate(ctx, &devices[i]); !errors.Is(err, cause) {
			t.Errorf("after the end of the context: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
