package output

import (
	"bytes"
	"image/color"
	"image/gif"
	"math"
	"testing"

	"jacobi/solver"
)

// frameOf returns the thumbnail of a field for an animation, in parts that ranks would have.
func frameOf(t *testing.T, m solver.Mesh, f func(ix, iy int) float64) *Thumbnail {
	t.Helper()
	whole, lower := NewFrame(m, 1, 1), NewFrame(m, 1, 1)
	for iy := range m.NY {
		part := whole
		if iy > m.NY/3 {
			part = lower
		}
		if err := part.AddRows(iy, testRow(m, iy, f)); err != nil {
			t.Fatal(err)
		}
	}
	if err := whole.merge(lower.encode()); err != nil {
		t.Fatal(err)
	}
	return whole
}

// All samples are frames as long as there are at most 100. Then every second one is, and so on.
func TestPace(t *testing.T) {
	var p Pace
	var frames []int
	for sample := range 1000 {
		frame, thin := p.Next()
		if thin {
			for i := range len(frames) / 2 {
				frames[i] = frames[2*i]
			}
			frames = frames[:len(frames)/2]
		}
		if frame {
			frames = append(frames, sample)
		}
		if len(frames) > maxFrames || sample < maxFrames && len(frames) != sample+1 {
			t.Fatalf("%d frames of %d samples", len(frames), sample+1)
		}
	}
	for i, sample := range frames {
		if sample != 16*i {
			t.Fatalf("frame %d is sample %d, want %d", i, sample, 16*i)
		}
	}
	if len(frames) != 63 {
		t.Errorf("%d frames of 1000 samples, want 63", len(frames))
	}
}

// All frames have one size and one colour scale, that of their whole range, and values of any size.
func TestAnimation(t *testing.T) {
	sizes := []float64{1, 1e-200, 1e200}
	if testing.Short() {
		sizes = sizes[:1] // the race detector is slow, and no size changes what is shared
	}
	for _, size := range sizes {
		m := solver.Mesh{NX: 900, NY: 500, DType: solver.Float64}
		var a Animation
		const n = 5
		for i := range n {
			value := size * float64(i+1)
			at := frameOf(t, m, func(ix, _ int) float64 {
				if ix == 0 {
					return 0
				}
				return value
			})
			if err := a.Add(10*i, math.NaN(), at, i == 3); err != nil {
				t.Fatal(err)
			}
		}
		if len(a.frames) != 4 || a.frames[1].sweeps != 20 || a.frames[2].sweeps != 30 { // 10 is left out
			t.Fatalf("frames %+v", a.frames)
		}
		b, err := a.Encode("a.gif", Caption{Title: "t", Scale: ScaleLinear, Norm: math.NaN()})
		if err != nil {
			t.Fatal(err)
		}
		g, err := gif.DecodeAll(bytes.NewReader(b))
		if err != nil || len(g.Image) != 4 {
			t.Fatalf("%d frames, %v", len(g.Image), err)
		}
		pictures, err := a.draw(Caption{Title: "t", Scale: ScaleLinear})
		if err != nil {
			t.Fatal(err)
		}
		middle := g.Image[0].Bounds().Size().Div(2)
		var shades []color.RGBA
		for i, p := range pictures {
			if p.Bounds() != g.Image[0].Bounds() || i > 0 && g.Image[i].Bounds().Dy() >= p.Bounds().Dy() {
				t.Errorf("frame %d has %v of %v", i, g.Image[i].Bounds(), p.Bounds())
			}
			shades = append(shades, p.At(middle.X, middle.Y).(color.RGBA))
		}
		col, err := newColours(colourScale{kind: ScaleLinear, max: 5 * size})
		if err != nil {
			t.Fatal(err)
		}
		for i, value := range []float64{1, 3, 4, 5} {
			want := newPalette(col).colours.Convert(col.of(value * size))
			if shades[i] != want {
				t.Errorf("size %g, frame %d: colour %v, want %v", size, i, shades[i], want)
			}
		}
	}
	if _, err := new(Animation).Encode("a.gif", Caption{}); err == nil ||
		err.Error() != "animation: an animation without frames" {
		t.Error(err)
	}
}
