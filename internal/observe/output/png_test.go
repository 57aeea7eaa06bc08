package output

import (
	"bytes"
	"image"
	"image/png"
	"math/rand/v2"
	"testing"
)

// A picture has the same pixels after it was written.
func TestWritePNG(t *testing.T) {
	for _, size := range []image.Point{{1, 1}, {5, 2}, {4, 3}, {3, 64}, {200, 65}, {70, 191}} {
		r := rand.New(rand.NewPCG(uint64(size.X), uint64(size.Y)))
		img := image.NewRGBA(image.Rectangle{Max: size})
		for i := range img.Pix {
			switch y := i / img.Stride; {
			case i%4 == 3:
				img.Pix[i] = 0xff
			case y%3 > 0:
				img.Pix[i] = img.Pix[i-img.Stride]
			default:
				img.Pix[i] = uint8(r.Uint32())
			}
		}
		var b bytes.Buffer
		must(t, writePNG(&b, img))
		got, err := png.Decode(&b)
		if err != nil {
			t.Fatalf("%v: %v", size, err)
		}
		if read, ok := got.(*image.RGBA); !ok || !bytes.Equal(read.Pix, img.Pix) || read.Rect != img.Rect {
			t.Errorf("%v: other pixels", size)
		}
	}
}
