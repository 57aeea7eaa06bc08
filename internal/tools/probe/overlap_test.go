package probe

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"math"
	"reflect"
	"strings"
	"testing"

	"jacobi/cuda/driver"
)

// Chunks cover every value once, whatever divides it.
func TestChunks(t *testing.T) {
	for _, values := range []int{1, 5, 63, 64, 65, 127, 1000, 4091} {
		for chunks := 1; chunks <= 64; chunks++ {
			next := 0
			for i := range chunks {
				lo, hi := chunkOf(values, chunks, i)
				if lo != next || hi < lo || i > 0 && hi-lo > (values+chunks-1)/chunks {
					t.Fatalf("%d values, chunk %d of %d: [%d, %d) after %d", values, i, chunks, lo, hi, next)
				}
				next = hi
			}
			if next != values {
				t.Fatalf("%d values in %d chunks: the last one ends at %d", values, chunks, next)
			}
		}
	}
	lo, hi := chunkOf(10, 4, 3)
	if lo != 9 || hi != 10 {
		t.Errorf("the last chunk of 10 values in 4 is [%d, %d), want [9, 10)", lo, hi)
	}
}

// The values of the kernel stay in [0, 1], and values that differ in their last bit soon differ in all.
func TestPlain(t *testing.T) {
	if got := plain(0, 0); got != 0.5/9973 {
		t.Errorf("got %g", got)
	}
	if got, want := plain(1, 1), float32(float32(3.75*input(1))*(1-input(1))); got != want {
		t.Errorf("got %g, want %g", got, want)
	}
	v, w := float32(0.3), math.Nextafter32(0.3, 1)
	for range 80 {
		v, w = float32(float32(3.75*v)*float32(1-v)), float32(float32(3.75*w)*float32(1-w))
	}
	if v < 0 || v > 1 || math.Abs(float64(v-w)) < 1e-3 {
		t.Errorf("after 80 steps: %g and %g", v, w)
	}
}

// overlapExample is what two GPUs might measure, the second one slowly.
func overlapExample() []overlapTimes {
	best, slow := chunkRun{8, breadthFirst, true}, chunkRun{8, depthFirst, true}
	inTurn, same := chunkRun{1, depthFirst, true}, chunkRun{1, breadthFirst, true}
	o := overlapTimes{values: 1 << 20, weight: 5, in: 0.002, kernel: 0.002, out: 0.0025, copies: 0.0027,
		runs: map[chunkRun]float64{inTurn: 0.007, same: 0.007, best: 0.003}, best: best, together: 0.0031}
	second := o
	second.gpu, second.best, second.together = 1, slow, 0.009
	second.runs = map[chunkRun]float64{inTurn: 0.007, same: 0.007, slow: 0.006}
	return []overlapTimes{o, second}
}

func TestOverlapIsJudged(t *testing.T) {
	var r Result
	r.judgeOverlap(overlapExample())
	want := []string{
		"GPU 1: in chunks, copies and kernel take 6ms; a perfect overlap would take 2.7ms.",
		"GPU 1: with copies of all GPUs at once a run takes 9ms, alone 6ms.",
		"GPU 1: overlapped copies and kernels reach 699 MB/s; the median of the GPUs is 1.40 GB/s.",
	}
	if !reflect.DeepEqual(r.Findings, want) {
		t.Errorf("got %q", r.Findings)
	}
}

// peersExample has the links of four GPUs.
func peersExample() (m *Machine, pairs []pair) {
	m = &Machine{GPUs: make([]driver.Device, 4)}
	for i := range 4 {
		m.GPUs[i].Index = i
		for j := range 4 {
			if i != j {
				pairs = append(pairs, pair{from: i, to: j, access: true, rate: 390e9 - 50e9*float64(i*j), both: 780e9})
			}
		}
	}
	return m, pairs
}

// The pictures are drawn from what arrives as JSON.
func TestPictures(t *testing.T) {
	var overlaps, peers Result
	overlaps.judgeOverlap(overlapExample())
	peers.judgePeers(peersExample())
	for _, p := range []struct {
		of      Result
		draw    func([]Table) ([]byte, error)
		colours []color.RGBA // what is drawn on white
		pixels  int          // at least, of each
	}{
		{overlaps, drawOverlap, curveColours[1:4], 300}, // the second curve hides the first one
		{peers, drawPeers, []color.RGBA{{0xdd, 0xdd, 0xdd, 0xff}}, 4 * cellSize * cellSize},
	} {
		data, err := json.Marshal(p.of.Tables)
		if err != nil {
			t.Fatal(err)
		}
		var tables []Table
		if err := json.Unmarshal(data, &tables); err != nil {
			t.Fatal(err)
		}
		picture, err := p.draw(tables)
		if err != nil {
			t.Fatal(err)
		}
		image, err := png.Decode(bytes.NewReader(picture))
		if err != nil || image.Bounds().Dx() < 400 {
			t.Fatalf("%v, %v", image.Bounds(), err)
		}
		seen := map[color.Color]int{}
		for y := range image.Bounds().Dy() {
			for x := range image.Bounds().Dx() {
				seen[color.RGBAModel.Convert(image.At(x, y))]++
			}
		}
		for _, c := range p.colours {
			if seen[c] < p.pixels {
				t.Errorf("%d pixels have the colour %v, want at least %d", seen[c], c, p.pixels)
			}
		}
	}
	if p, err := drawPeers(nil); p != nil || err != nil {
		t.Errorf("without pairs: %d bytes, %v", len(p), err)
	}
}

func TestPeersAreJudged(t *testing.T) {
	const fast, slow = 8e-7, 2e-6
	m := &Machine{GPUs: []driver.Device{{Index: 0}, {Index: 1}, {Index: 2}}}
	var r Result
	r.judgePeers(m, []pair{
		{0, 1, true, 390e9, 780e9, fast, false}, {1, 0, true, 390e9, 780e9, fast, false},
		{0, 2, false, 20e9, 30e9, 0, false}, {2, 0, true, 390e9, 780e9, 0, true},
		{1, 2, true, 390e9, 780e9, slow, false}, {2, 1, true, 389e9, 780e9, fast, false},
	})
	want := []string{
		"GPU 0 has no access to the memory of GPU 2; copies go through the host.",
		"GPU 0: copies from GPU 2 bring other bytes.",
		"GPU 0 sends 20.0 GB/s to GPU 2; the median of the pairs is 390 GB/s.",
		"GPUs 0 and 2 exchange 30.0 GB/s; the median of the pairs is 780 GB/s.",
		"GPUs 1 and 2: a write takes 2µs; the median of the pairs is 800ns.",
	}
	if !reflect.DeepEqual(r.Findings, want) {
		t.Errorf("got %q", r.Findings)
	}
	if len(r.Figures) != 16 || r.Figures[0] != (Figure{"peers.gpu0.gpu1.rate", 390e9, "B/s"}) {
		t.Errorf("figures: %v", r.Figures)
	}
	const text = "  copies: a row sends and a column receives\n         GPU 0     GPU 1     GPU 2\n" +
		"  GPU 0  -         390 GB/s  20.0 GB/s\n"
	if !strings.Contains(r.Text, text) {
		t.Errorf("no\n%sin\n%s", text, r.Text)
	}
}
