package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"testing"

	"jacobi/cuda/driver"
	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/base/pubsub"
	"jacobi/internal/tools/probe/gpu"
	"jacobi/solver"
)

// bus is a connection that delivers a message at once to the subscriber of its subject.
type bus struct {
	pubsub.Conn
	handle map[string]func(pubsub.Message)
}

type subscription struct{ pubsub.Subscription }

func (subscription) Unsubscribe() error { return nil }

func (b *bus) Subscribe(subject string, handle func(pubsub.Message)) (pubsub.Subscription, error) {
	b.handle[subject] = handle
	return subscription{}, nil
}

func (b *bus) Publish(subject string, data []byte) error {
	b.handle[subject](pubsub.Message{Subject: subject, Data: append([]byte(nil), data...)})
	return nil
}

func (*bus) FlushWithContext(context.Context) error { return nil }

// names returns the names of rows, by GPUs.
func names(rows []row) map[int][]string {
	all := map[int][]string{}
	for _, r := range rows {
		all[int(r.gpus)] = append(all[int(r.gpus)], r.name)
	}
	return all
}

// All kernels give the sum, for numbers of values that nothing divides. So do several GPUs, however their sums are
// gathered; their exact sum is the same to the bit for any number of them.
func TestReductionsOnGPUs(t *testing.T) {
	devices := emulatetest.ProbeGPUs(t)
	for _, k := range kinds() {
		for _, n := range []int{1, 3, 257, 1023, 9001} {
			rows, err := addOnGPU(t.Context(), &devices[0], k, n)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"probe_sum_divergent", "probe_sum_conflicts", "probe_sum_sequential", "probe_sum_load",
				"probe_sum_shuffle", "probe_sum_several", "probe_sum_once", "probe_sum_exact"}
			if !k.float() {
				want = want[:7]
			}
			if got := names(rows)[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: measured %v", k, got)
			}
		}
	}
	for _, peers := range []string{"1", "0"} {
		t.Setenv("FAKE_PEERS", peers)
		for _, k := range []kind{"float32", "float64"} {
			by := &post{conn: &bus{handle: map[string]func(pubsub.Message){}}, subject: "sums"}
			rows, err := addOverGPUs(t.Context(), devices, k, 20021, by)
			if err != nil {
				t.Fatal(err)
			}
			for gpus, got := range names(rows) {
				want := []string{"host", "peer", "nats", "host, exact"}
				if peers == "0" && gpus > 1 && len(devices) == 4 {
					want = []string{"host", "nats", "host, exact"}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s on %d GPUs, peers %s: gathered by %v", k, gpus, peers, got)
				}
			}
		}
	}
}

func TestReductionsOnCPU(t *testing.T) {
	for _, k := range kinds() {
		for _, n := range []int{1, 5, 10007} {
			rows, err := addOnCPU(t.Context(), k, n)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"serial", "unrolled", "all cores", "exact"}
			if !k.float() {
				want = want[:3]
			}
			if got := names(rows)[0]; !reflect.DeepEqual(got, want) || rows[0].speedUp != 1 ||
				rows[1].step != rows[1].speedUp {
				t.Errorf("%s: %+v", k, rows)
			}
		}
	}
}

// The sums that follow from hashes are those of the values, added as big integers.
func TestSumOf(t *testing.T) {
	const n = 5000
	for _, k := range []kind{"float32", "float64"} {
		total := new(big.Int)
		for i := range uint64(n) {
			value := float64(hashOf(i)>>11) * 0x1p-53
			if k == "float32" {
				value = float64(float32(hashOf(i)>>40) * 0x1p-24)
			}
			scaled, _ := new(big.Float).SetFloat64(math.Ldexp(value, 53)).Int(nil)
			total.Add(total, scaled)
		}
		got := new(big.Int)
		for i, limb := range sumOf(k, n).Limbs {
			got.Add(got, new(big.Int).Lsh(new(big.Int).SetUint64(limb), uint(64*i)))
		}
		if want := total.Lsh(total, solver.UnitBits-53); got.Cmp(want) != 0 {
			t.Errorf("%s: %v, want %v", k, got, want)
		}
	}
}

func TestWrongSumsAreRefused(t *testing.T) {
	for k, value := range map[kind]any{"int32": int32(7), "int64": int64(7), "float32": float32(7), "float64": 7.0} {
		eight := solver.Sum{Limbs: [3]uint64{8}}
		if k.float() {
			eight = solver.Sum{}
			eight.Add(8, 0)
		}
		got, err := binary.Append(nil, binary.LittleEndian, value)
		if err == nil {
			_, err = k.compare(got, eight, 0)
		}
		if err == nil || err.Error() != "the sum is 7, not 8" {
			t.Errorf("%s: %v", k, err)
		}
	}
}

// All kernels give the matrix or its transpose, for sizes that no tile divides, and on several GPUs with and without
// access to each other's memory.
func TestTransposesOnGPUs(t *testing.T) {
	devices := emulatetest.ProbeGPUs(t)
	transposesOnGPU(t, devices[0], matrix[uint32]{1, 1}, matrix[uint32]{64, 96}, matrix[uint32]{131, 70})
	transposesOnGPU(t, devices[0], matrix[uint64]{33, 7}, matrix[uint64]{95, 129})
	for _, peers := range []string{"1", "0"} {
		t.Setenv("FAKE_PEERS", peers)
		var r Result
		a, err := matrix[uint32]{256, 192}.overGPUs(t.Context(), devices, &r)
		if err != nil {
			t.Fatalf("peers %s: %v", peers, err)
		}
		b, err := matrix[uint64]{101, 67}.overGPUs(t.Context(), devices, &r)
		if err != nil {
			t.Fatalf("peers %s: %v", peers, err)
		}
		if _, err := (matrix[uint32]{5, 4}).overGPUs(t.Context(), devices, &r); err != nil {
			t.Fatalf("peers %s: %v", peers, err)
		}
		for _, rows := range [][]row{a, b} {
			for gpus, got := range names(rows) {
				if !reflect.DeepEqual(got, []string{"blocking", "asynchronous"}) {
					t.Errorf("%d GPUs, peers %s: %v", gpus, peers, got)
				}
			}
			if n := len(names(rows)); n != len(gpu.Counts(len(devices))) {
				t.Errorf("peers %s: %d numbers of GPUs", peers, n)
			}
		}
		if len(devices) == 4 && (peers == "0") != (len(r.Findings) > 0) {
			t.Errorf("peers %s: findings %q", peers, r.Findings)
		}
	}
}

// The check finds a value in the wrong place.
func TestCheckFindsAWrongValue(t *testing.T) {
	m := matrix[uint32]{9, 5}
	b := m.rows(0, m.ny)
	if err := m.check(b, copied); err != nil {
		t.Error(err)
	}
	if err := m.check(b, m.transposed(0)); err == nil {
		t.Error("a copy passes as the transpose")
	}
	b[13] ^= 1
	want := fmt.Sprintf("value 13 of the result is %#x, not %#x", wordAt[uint32](13)^1, wordAt[uint32](13))
	if err := m.check(b, copied); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTransposesOnCPU(t *testing.T) {
	for _, m := range []matrix[uint64]{{1, 1}, {513, 70}, {64, 1000}} {
		rows, err := m.onCPU(t.Context())
		if got := names(rows)[0]; err != nil || !reflect.DeepEqual(got, []string{"copy", "naive", "blocked"}) {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	if _, err := (matrix[uint32]{100, 37}).onCPU(t.Context()); err != nil {
		t.Error(err)
	}
}

// On four GPUs the slices and blocks are those of the description of block.
func TestBlocks(t *testing.T) {
	m := matrix[uint32]{1024, 768}
	seen := map[string]bool{}
	for to := range 4 {
		for stage := range 4 {
			b := m.blockOf(to, stage, 4)
			if b.width() != 256 || b.height() != 192 || b.from != (to+stage)%4 ||
				b.rows != [2]int{192 * b.from, 192 * (b.from + 1)} || b.columns != [2]int{256 * to, 256 * (to + 1)} {
				t.Errorf("GPU %d, stage %d: %+v", to, stage, b)
			}
			seen[fmt.Sprint(b.from, b.to)] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d of 16 blocks are transposed", len(seen))
	}
}

func TestCounts(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1, 2}, 5: {1, 2, 4, 5}, 8: {1, 2, 4, 8}} {
		if got := gpu.Counts(n); !reflect.DeepEqual(got, want) {
			t.Errorf("up to %d: %v, want %v", n, got, want)
		}
	}
}

// A table has a column for what its rows have, and a figure for each row.
func TestTables(t *testing.T) {
	var r Result
	r.showRows("the CPU", "part.cpu", relate([]row{{name: "a b", seconds: 2, rate: 1e9},
		{name: "c, d", seconds: 1, rate: 2e9, off: 1e-7}}, 4e9))
	r.showRows("over GPUs", "part.over", []row{{name: "e", gpus: 2, seconds: 1, rate: 3e9, speedUp: 2}})
	const want = "  the CPU\n  way   time  rate       step  speed-up  of copy  error\n" +
		"  a b   2s    1.00 GB/s  1.00  1.00      25%      -\n" +
		"  c, d  1s    2.00 GB/s  2.00  2.00      50%      1e-07\n" +
		"  over GPUs\n  GPUs  way  time  rate       speed-up  efficiency\n" +
		"  2     e    1s    3.00 GB/s  2.00      100%\n"
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	figures := []Figure{{"part.cpu.a_b", 1e9, "B/s"}, {"part.cpu.c_d", 2e9, "B/s"}, {"part.over2.e", 3e9, "B/s"}}
	if !reflect.DeepEqual(r.Figures, figures) {
		t.Errorf("figures %v", r.Figures)
	}
}

func transposesOnGPU[T word](t *testing.T, device driver.Device, all ...matrix[T]) {
	t.Helper()
	for _, m := range all {
		rows, err := m.onGPU(t.Context(), &device)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		want := []string{"copy by the driver", "probe_copy", "probe_copy_shared", "probe_transpose_naive",
			"probe_transpose_coalesced", "probe_transpose_padded", "probe_transpose_wide"}
		if got := names(rows)[0]; !reflect.DeepEqual(got, want) || rows[0].ofCopy != 1 {
			t.Errorf("%v: measured %v", m, rows)
		}
	}
}
