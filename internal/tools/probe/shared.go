package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"jacobi/halo"
	"jacobi/internal/base/shm"
	"jacobi/solver"
)

// sharedReport has what the shared memory between ranks of a node does, through the link that a run uses.
type sharedReport struct {
	Latency float64 `json:"latency_seconds"` // of a row of 8 bytes: half of a round trip
	Rate    float64 `json:"rate"`            // of rows that both ends send at once, bytes a second and direction
	Bytes   int     `json:"bytes"`           // of one exchange
}

const (
	sharedBytes     = 1 << 20
	sharedExchanges = 300
	sharedTries     = 5
	sharedTimeout   = 10 * time.Second
)

// sharedMemory measures a link through shared memory between two threads of this process. Ranks are processes of their
// own, but to the memory that is the same.
func sharedMemory(ctx context.Context) (*sharedReport, error) {
	r := &sharedReport{Bytes: sharedBytes}
	small, err := sharedExchange(ctx, 8)
	if err != nil {
		return nil, err
	}
	large, err := sharedExchange(ctx, sharedBytes)
	if err != nil {
		return nil, err
	}
	r.Latency, r.Rate = small.Seconds(), sharedBytes/large.Seconds()
	return r, nil
}

// sharedExchange returns the shortest time of an exchange: each end sends bytes and receives those of the other.
func sharedExchange(ctx context.Context, bytes int) (time.Duration, error) {
	values := bytes / 8
	end := halo.End{Run: halo.RunIDOf("probe"), Rank: 0, Neighbour: 1, Side: solver.Bottom, NX: values,
		DType: solver.Float64, Send: solver.Stripe{Lo: 8, Hi: 9}, Recv: solver.Stripe{Lo: 9, Hi: 10}}
	o := halo.SharedOptions{Timeout: sharedTimeout, Spin: shm.SpinTime(1)}
	a, handle, err := halo.CreateShared(end, o)
	if err != nil {
		return 0, err
	}
	b, err := halo.OpenShared(end.Facing(), handle, o)
	if err != nil {
		return 0, errors.Join(err, a.Close())
	}
	best := time.Duration(-1)
	next := solver.ExchangeNumber(1)
	for range sharedTries {
		took, err := exchangeBoth(ctx, a, b, next, bytes)
		if err != nil {
			return 0, errors.Join(err, a.Close(), b.Close())
		}
		next += sharedExchanges
		if took /= sharedExchanges; best < 0 || took < best {
			best = took
		}
	}
	return best, errors.Join(a.Close(), b.Close())
}

// exchangeBoth does many exchanges on both ends at once.
func exchangeBoth(ctx context.Context, a, b halo.Link, first solver.ExchangeNumber, bytes int) (time.Duration, error) {
	var errs [2]error
	var both sync.WaitGroup
	start := time.Now()
	for i, l := range []halo.Link{a, b} {
		both.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			rows := make([]byte, bytes)
			for n := first; n < first+sharedExchanges && errs[i] == nil; n++ {
				if errs[i] = l.Send(ctx, n, rows); errs[i] == nil {
					errs[i] = l.Recv(ctx, n, rows)
				}
			}
		})
	}
	both.Wait()
	return time.Since(start), errors.Join(errs[:]...)
}

func (r *sharedReport) text() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("  shared memory between ranks: %s for 8 bytes, %s each way for %s\n", seconds(r.Latency),
		rate(r.Rate), size(int64(r.Bytes)))
}
