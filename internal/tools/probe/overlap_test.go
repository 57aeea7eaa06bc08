package probe

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"math"
	"reflect"
	"testing"
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
func overlapExample() []OverlapReport {
	best := ChunkRun{8, BreadthFirst, true, 0.003}
	slow := ChunkRun{8, DepthFirst, true, 0.006}
	one := ChunkRun{1, DepthFirst, true, 0.007}
	return []OverlapReport{
		{GPU: 0, Values: 1 << 20, Weight: 5, In: 0.002, Kernel: 0.002, Out: 0.0025, Copies: 0.0027,
			Runs: []ChunkRun{one, best}, Best: &best, Together: 0.0031},
		{GPU: 1, Values: 1 << 20, Weight: 5, In: 0.002, Kernel: 0.002, Out: 0.0025, Copies: 0.0027,
			Runs: []ChunkRun{one, slow}, Best: &slow, Together: 0.009},
	}
}

func TestOverlapIsJudged(t *testing.T) {
	var r Result
	judgeOverlap(overlapExample(), &r)
	want := []string{
		"GPU 1: in chunks, copies and kernel take 6ms; a perfect overlap would take 2.7ms.",
		"GPU 1: with copies of all GPUs at once a run takes 9ms, alone 6ms.",
		"GPU 1: overlapped copies and kernels reach 699 MB/s; the median of the GPUs is 1.40 GB/s.",
	}
	if !reflect.DeepEqual(r.Findings, want) {
		t.Errorf("got %q", r.Findings)
	}
}

func TestPictures(t *testing.T) {
	overlap, err := json.Marshal(overlapExample())
	if err != nil {
		t.Fatal(err)
	}
	var d peersReport
	for i := range 4 {
		d.GPUs = append(d.GPUs, i)
		for j := range 4 {
			if i != j {
				d.Pairs = append(d.Pairs, Pair{From: i, To: j, Access: true, Rate: 390e9 - 50e9*float64(i*j)})
			}
		}
	}
	peers, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	none := color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	for _, p := range []struct {
		data    []byte
		draw    func([]byte) ([]byte, error)
		colours []color.RGBA // what is drawn on white
		pixels  int          // at least, of each
	}{
		{overlap, drawOverlap, curveColours[1:4], 300}, // the second curve hides the first one
		{peers, drawPeers, []color.RGBA{none}, 4 * cellSize * cellSize},
	} {
		picture, err := p.draw(p.data)
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
	if p, err := drawPeers([]byte(`{"pairs": []}`)); p != nil || err != nil {
		t.Errorf("without pairs: %d bytes, %v", len(p), err)
	}
}

func TestPeersAreJudged(t *testing.T) {
	fast, slow := 8e-7, 2e-6
	d := peersReport{GPUs: []int{0, 1, 2}, Pairs: []Pair{
		{0, 1, true, 390e9, 780e9, &fast, false}, {1, 0, true, 390e9, 780e9, &fast, false},
		{0, 2, false, 20e9, 30e9, nil, false}, {2, 0, true, 390e9, 780e9, nil, true},
		{1, 2, true, 390e9, 780e9, &slow, false}, {2, 1, true, 389e9, 780e9, &fast, false},
	}}
	var r Result
	d.judge(&r)
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
}
