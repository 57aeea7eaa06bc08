package reduction

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"jacobi/cuda"
	"jacobi/cuda/driver"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

// The ways to gather partial sums.
const (
	ByHost = "host" // every GPU sends its sum to the host, which adds them
	ByPeer = "peer" // every GPU writes its sum into the memory of the first GPU, which adds them
	ByNATS = "nats" // every GPU's sum is published, and a subscriber adds them
)

// Post is a connection over which sums are gathered, and a subject that nobody else uses.
type Post struct {
	Conn    pubsub.Conn
	Subject string
}

// natsTimeout bounds the wait for sums over NATS.
const natsTimeout = 5 * time.Second

// over is an array of n values that is divided among GPUs.
type over struct {
	crew   *gpu.Crew
	parts  []*array
	kind   Type
	n      int
	sums   []func() error   // by GPU: queues the sum of its part
	exact  []func() error   // the same, exact
	came   driver.DevicePtr // on GPU 0: the partial sums of all GPUs
	marks  []*driver.Event  // by GPU: its partial sum is in came
	total  func() error     // on GPU 0: queues the sum of came
	post   *Post
	arrive chan []byte
}

// OverGPUs measures the sum of n values of a floating-point type on the first 1, 2, 4... and all GPUs. post is nil
// without a server.
func OverGPUs(ctx context.Context, devices []driver.Device, kind Type, n int, post *Post) (all []Over, err error) {
	want, single := sumOf(kind, n), map[string]float64{}
	for _, gpus := range gpu.Counts(len(devices)) {
		found, err := onSome(ctx, devices[:gpus], kind, n, post, want)
		if err != nil {
			return all, fmt.Errorf("sum over %d GPUs: %w", gpus, err)
		}
		for _, o := range found {
			key := fmt.Sprint(o.Gather, o.Exact)
			if gpus == 1 {
				single[key] = o.Seconds
			}
			o.SpeedUp = single[key] / o.Seconds
			o.Efficiency = o.SpeedUp / float64(gpus)
			all = append(all, o)
		}
	}
	return all, nil
}

func onSome(ctx context.Context, devices []driver.Device, kind Type, n int, post *Post, want sum) (all []Over,
	err error) {
	crew, err := gpu.OpenCrew(devices)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, crew.Close()) }()
	size := len(devices)
	o := &over{crew: crew, kind: kind, n: n, parts: make([]*array, size), sums: make([]func() error, size),
		exact: make([]func() error, size), marks: make([]*driver.Event, size), post: post,
		arrive: make(chan []byte, size)}
	if err := crew.Each(o.load); err != nil {
		return nil, err
	}
	if post != nil {
		sub, err := post.Conn.Subscribe(post.Subject, func(m pubsub.Message) { o.arrive <- m.Data })
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, sub.Unsubscribe()) }()
		if err := post.Conn.FlushWithContext(ctx); err != nil {
			return nil, err
		}
	}
	for _, way := range []struct {
		name string
		skip bool
		do   func(ctx context.Context) (float64, error)
	}{{ByHost, false, o.byHost}, {ByPeer, !crew.Peers, o.byPeer}, {ByNATS, post == nil, o.byNATS}} {
		if way.skip {
			continue
		}
		var got float64
		took, err := o.fastest(ctx, func() (err error) { got, err = way.do(ctx); return err })
		if err != nil {
			return nil, fmt.Errorf("gathered by %s: %w", way.name, err)
		}
		off := math.Abs(got-want.float()) / want.float()
		if !(off <= kind.maxError()) {
			return nil, fmt.Errorf("gathered by %s: WRONG: the sum is %v, not %v", way.name, got, want.float())
		}
		all = append(all, o.measured(way.name, false, took, off))
	}
	var whole solver.Sum
	took, err := o.fastest(ctx, func() (err error) { whole, err = o.exactByHost(); return err })
	if err != nil {
		return nil, err
	}
	if whole != want.exact() {
		return nil, fmt.Errorf("WRONG: the exact sum is %v, not %v", whole, want.exact())
	}
	return append(all, o.measured(ByHost, true, took, 0)), nil
}

func (o *over) measured(gather string, exact bool, took, off float64) Over {
	return Over{GPUs: len(o.parts), Gather: gather, Exact: exact, Type: o.kind, Values: o.n, Seconds: took,
		Rate: float64(o.n*o.kind.Size()) / took, Error: off}
}

// load allocates the part of GPU i.
func (o *over) load(i int) (err error) {
	size := len(o.parts)
	lo, hi := o.n*i/size, o.n*(i+1)/size
	g := o.crew.GPUs[i]
	if o.parts[i], err = load(g, o.kind, hi-lo, lo); err != nil {
		return err
	}
	a := o.parts[i]
	if o.sums[i], err = a.oneLaunch(a.values, a.n); err != nil {
		return err
	}
	if o.exact[i], err = a.exactLaunch(); err != nil {
		return err
	}
	if o.marks[i], err = g.Event(); err != nil || i > 0 {
		return err
	}
	if o.came, err = g.Alloc(int64(8 * size)); err != nil {
		return err
	}
	o.total, err = a.oneLaunch(o.came, uint64(size))
	return err
}

// fastest returns the shortest time of several runs, in seconds, after one that does not count.
func (o *over) fastest(ctx context.Context, run func() error) (float64, error) {
	best := -1.0
	for try := range tries + 1 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := o.crew.Synchronize(); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		if took := time.Since(begin).Seconds(); try > 0 && (best < 0 || took < best) {
			best = took
		}
	}
	return best, nil
}

// number returns a value of the type as it lies in memory.
func (o *over) number(b []byte) float64 {
	if o.kind == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// partial adds the values of GPU i and returns their sum.
func (o *over) partial(i int) ([]byte, error) {
	if err := o.sums[i](); err != nil {
		return nil, err
	}
	return o.parts[i].fetch(o.parts[i].partial[0], o.kind.Size())
}

func (o *over) byHost(context.Context) (sum float64, err error) {
	parts := make([]float64, len(o.parts))
	err = o.crew.Each(func(i int) error {
		b, err := o.partial(i)
		if err == nil {
			parts[i] = o.number(b)
		}
		return err
	})
	return serial(parts), err
}

func (o *over) byPeer(context.Context) (sum float64, err error) {
	err = o.crew.Each(func(i int) error {
		a := o.parts[i]
		if err := o.sums[i](); err != nil {
			return err
		}
		to := o.came + driver.DevicePtr(i*o.kind.Size())
		if err := a.stream.CopyOnDevice(to, a.partial[0], o.kind.Size()); err != nil {
			return err
		}
		return o.marks[i].Record(a.stream)
	})
	if err != nil {
		return 0, err
	}
	err = o.crew.Each(func(i int) error {
		if i > 0 {
			return nil
		}
		a := o.parts[0]
		for _, mark := range o.marks[1:] {
			if err := a.stream.Wait(mark); err != nil {
				return err
			}
		}
		if err := o.total(); err != nil {
			return err
		}
		b, err := a.fetch(a.partial[0], o.kind.Size())
		if err == nil {
			sum = o.number(b)
		}
		return err
	})
	return sum, err
}

func (o *over) byNATS(ctx context.Context) (sum float64, err error) {
	err = o.crew.Each(func(i int) error {
		b, err := o.partial(i)
		if err != nil {
			return err
		}
		return o.post.Conn.Publish(o.post.Subject, b)
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	for range o.parts {
		select {
		case b := <-o.arrive:
			if len(b) != o.kind.Size() {
				return 0, fmt.Errorf("a message of %d bytes on %s", len(b), o.post.Subject)
			}
			sum += o.number(b)
		case <-ctx.Done():
			return 0, fmt.Errorf("wait for sums on %s: %w", o.post.Subject, context.Cause(ctx))
		}
	}
	return sum, nil
}

// exactByHost adds the exact sums of all GPUs. The result does not depend on their number.
func (o *over) exactByHost() (total solver.Sum, err error) {
	parts := make([]solver.Sum, len(o.parts))
	err = o.crew.Each(func(i int) error {
		if err := o.exact[i](); err != nil {
			return err
		}
		words, err := o.parts[i].fetch(o.parts[i].words, cuda.ExactBytes)
		if err == nil {
			parts[i] = cuda.ExactSum(words)
		}
		return err
	})
	for _, p := range parts {
		total.Merge(p)
	}
	return total, err
}
