package transpose

import (
	"fmt"
	"reflect"
	"testing"

	"jacobi/cuda/emulate/emulatetest"
	"jacobi/internal/tools/probe/gpu"
)

// All kernels give the matrix or its transpose, for sizes that no tile divides, and on several GPUs with and without
// access to each other's memory.
func TestGPUs(t *testing.T) {
	devices := emulatetest.ProbeGPUs(t)
	for _, m := range []Matrix{{1, 1, 4}, {33, 7, 8}, {64, 96, 4}, {131, 70, 4}, {95, 129, 8}} {
		all, err := OnGPU(t.Context(), &devices[0], m)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		var names []string
		for _, k := range all {
			names = append(names, k.Name)
			if want := 2 * float64(m.Bytes()) / k.Seconds; k.Rate != want || k.OfCopy != all[0].Seconds/k.Seconds {
				t.Errorf("%v: %+v, want %g B/s", m, k, want)
			}
		}
		want := []string{"copy by the driver", "probe_copy", "probe_copy_shared", "probe_transpose_naive",
			"probe_transpose_coalesced", "probe_transpose_padded", "probe_transpose_wide"}
		if !reflect.DeepEqual(names, want) {
			t.Errorf("%v: measured %v", m, names)
		}
	}
	for _, peers := range []string{"1", "0"} {
		t.Setenv("FAKE_PEERS", peers)
		for _, m := range []Matrix{{256, 192, 4}, {101, 67, 8}, {5, 4, 4}} {
			all, err := OverGPUs(t.Context(), devices, m)
			if err != nil {
				t.Fatalf("%v, peers %s: %v", m, peers, err)
			}
			if len(all) != 2*len(gpu.Counts(len(devices))) {
				t.Errorf("%v, peers %s: %d measurements", m, peers, len(all))
			}
			for _, o := range all {
				way := map[string]string{"1": ByPeer, "0": ByHost}[peers]
				if o.GPUs == 1 {
					way = without
				}
				if len(devices) == 4 && o.Way != way || o.Efficiency != o.SpeedUp/float64(o.GPUs) {
					t.Errorf("%v, peers %s: %+v, want the way %s", m, peers, o, way)
				}
			}
		}
	}
}

// On four GPUs the slices and blocks are those of the description of block.
func TestBlocks(t *testing.T) {
	m := Matrix{1024, 768, 4}
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

func TestOnCPU(t *testing.T) {
	for _, m := range []Matrix{{1, 1, 8}, {100, 37, 4}, {513, 70, 8}, {64, 1000, 4}} {
		all, err := OnCPU(t.Context(), m)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		if len(all) != 3 || all[0].Name != "copy" || all[1].Name != "naive" || all[2].Name != "blocked" {
			t.Errorf("%v: %+v", m, all)
		}
	}
}

// The check finds a value in the wrong place.
func TestCheckFindsAWrongValue(t *testing.T) {
	m := Matrix{9, 5, 4}
	b := make([]byte, m.Bytes())
	m.fill(b, 0, m.NY)
	if err := m.checkCopied(b); err != nil {
		t.Error(err)
	}
	if err := m.checkTransposed(b, 0, m.NX); err == nil {
		t.Error("a copy passes as the transpose")
	}
	b[4*13] ^= 1
	want := fmt.Sprintf("WRONG: row 1, column 4 of the result holds %#x, not %#x", uint32(value(13))^1,
		uint32(value(13)))
	if err := m.checkCopied(b); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
