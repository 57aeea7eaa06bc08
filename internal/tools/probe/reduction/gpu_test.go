package reduction

import (
	"math"
	"math/big"
	"reflect"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/base/pubsub"
)

// bus is a connection that delivers a message at once to the subscriber of its subject.
type bus struct {
	pubsub.Conn
	t      *testing.T
	handle map[string]func(pubsub.Message)
}

type subscription struct {
	pubsub.Subscription
	end func()
}

func (s subscription) Unsubscribe() error { s.end(); return nil }

func (b *bus) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	b.handle[subject] = handle
	return subscription{end: func() { delete(b.handle, subject) }}, nil
}

func (b *bus) Publish(subject string, data []byte) error {
	b.handle[subject](pubsub.Message{Subject: subject, Data: append([]byte(nil), data...)})
	return nil
}

// All kernels give the sum, for numbers of values that nothing divides. So do several GPUs, however their sums are
// gathered; their exact sum is the same to the bit for any number of them.
func TestGPUs(t *testing.T) {
	devices := emulatetest.ProbeGPUs(t)
	for _, kind := range Types() {
		for _, n := range []int{1, 3, 257, 1023, 9001} {
			steps, err := OnGPU(t.Context(), &devices[0], kind, n)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range steps {
				names = append(names, s.Name)
			}
			want := []string{"probe_sum_divergent", "probe_sum_conflicts", "probe_sum_sequential", "probe_sum_load",
				"probe_sum_shuffle", "probe_sum_several", "probe_sum_once", "probe_sum_exact"}
			if !kind.float() {
				want = want[:7]
			}
			if !reflect.DeepEqual(names, want) {
				t.Errorf("%s: measured %v", kind, names)
			}
		}
	}
	for _, peers := range []bool{true, false} {
		ways := []string{ByHost, ByPeer, ByNATS, ByHost}
		if !peers {
			t.Setenv("FAKE_PEERS", "0")
		}
		for _, kind := range []Type{Float32, Float64} {
			post := &Post{&bus{t: t, handle: map[string]func(pubsub.Message){}}, "sums"}
			post.Conn.(*bus).Conn = flushed{}
			all, err := OverGPUs(t.Context(), devices, kind, 20021, post)
			if err != nil {
				t.Fatal(err)
			}
			byGPUs := map[int][]string{}
			for _, o := range all {
				byGPUs[o.GPUs] = append(byGPUs[o.GPUs], o.Gather)
			}
			for gpus, got := range byGPUs {
				want := ways
				if !peers && gpus > 1 && len(devices) == 4 {
					want = []string{ByHost, ByNATS, ByHost}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s on %d GPUs, peers %t: gathered by %v", kind, gpus, peers, got)
				}
			}
		}
	}
}

func TestOnCPU(t *testing.T) {
	for _, kind := range Types() {
		for _, n := range []int{1, 5, 10007} {
			steps, err := OnCPU(t.Context(), kind, n)
			if err != nil {
				t.Fatal(err)
			}
			want := 4
			if !kind.float() {
				want = 3
			}
			if len(steps) != want || steps[0].SpeedUp != 1 || steps[1].StepUp != steps[1].SpeedUp {
				t.Errorf("%s: %+v", kind, steps)
			}
		}
	}
}

// The sums that follow from hashes are those of the values, added as big integers.
func TestSumOf(t *testing.T) {
	const n = 5000
	for _, kind := range []Type{Float32, Float64} {
		total := new(big.Int)
		for i := range uint64(n) {
			var value float64
			if h := hashOf(i); kind == Float32 {
				value = float64(float32(h>>40) * 0x1p-24)
			} else {
				value = float64(h>>11) * 0x1p-53
			}
			scaled, _ := new(big.Float).SetFloat64(math.Ldexp(value, 53)).Int(nil)
			total.Add(total, scaled)
		}
		got := sumOf(kind, n)
		want := new(big.Int).SetUint64(got.hi)
		want.Lsh(want, 64).Add(want, new(big.Int).SetUint64(got.lo))
		if total.Cmp(want) != 0 {
			t.Errorf("%s: %v, want %v", kind, want, total)
		}
	}
}

func TestCompareRefusesAWrongSum(t *testing.T) {
	for kind, want := range map[Type]string{
		Int32: "WRONG: the sum is 7, not 8", Int64: "WRONG: the sum is 7, not 8",
		Float32: "WRONG: the sum is 7, not 8", Float64: "WRONG: the sum is 7, not 8",
	} {
		s := sum{lo: 8}
		var got []byte
		switch kind {
		case Int32:
			got = bytesOf(int32(7))
		case Int64:
			got = bytesOf(int64(7))
		case Float32:
			s.lo, got = 8<<53, bytesOf(float32(7))
		case Float64:
			s.lo, got = 8<<53, bytesOf(float64(7))
		}
		if _, err := kind.compare(got, s, kind.maxError()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", kind, err, want)
		}
	}
}
