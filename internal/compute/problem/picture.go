package problem

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"

	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// picture is a picture in black and white: a bit for each pixel, set where it is black.
type picture struct {
	width, height int
	bits          []uint64 // rows one after the other, without gaps
	*blocks                // one
}

// Limits of a picture file and of its pixels in memory.
const (
	maxPictureFile   = 1 << 28
	maxPicturePixels = 1 << 28 // bytes
)

// openPicture reads the PNG file at path. A pixel is black if its luminance on white ground is below half.
func openPicture(path string) (*picture, error) {
	img, err := readPNG(path)
	if err != nil {
		return nil, err
	}
	return newPicture(img), nil
}

// readPNG reads the PNG file at path.
func readPNG(path string) (image.Image, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller names the path
	}
	defer f.Close()
	config, err := png.DecodeConfig(bufio.NewReader(io.LimitReader(f, maxPictureFile)))
	if _, other := errors.AsType[png.FormatError](err); other {
		return nil, errors.New("it is not a PNG picture")
	}
	if err != nil {
		return nil, err
	}
	if bytes := int64(config.Width) * int64(config.Height) * pixelBytes(config.ColorModel); bytes > maxPicturePixels {
		return nil, fmt.Errorf("a picture of %d x %d pixels takes %d MiB; at most %d MiB are allowed, which is "+
			"16384 x 16384 pixels of 8-bit grey", config.Width, config.Height, bytes>>20, maxPicturePixels>>20)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	img, err := png.Decode(bufio.NewReader(io.LimitReader(f, maxPictureFile)))
	if err != nil {
		return nil, fmt.Errorf("not a complete PNG file of at most %d MiB: %w", maxPictureFile>>20, err)
	}
	return img, nil
}

// pixelBytes returns the bytes of a pixel in the images that package png returns for a colour model.
func pixelBytes(m color.Model) int64 {
	switch m {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	return 4
}

func newPicture(img image.Image) *picture {
	size := img.Bounds().Size()
	p := &picture{width: size.X, height: size.Y, bits: make([]uint64, (size.X*size.Y+63)/64)}
	at := blackness(img)
	for i := range size.X * size.Y {
		if at(i%size.X, i/size.X) {
			p.bits[i/64] |= 1 << (i % 64)
		}
	}
	data, _ := binary.Append(nil, binary.LittleEndian, p.bits) // fails for types that have no fixed size
	p.blocks = oneBlock(p.width, data)
	return p
}

// blackness returns a function that says whether a pixel of img is black.
func blackness(img image.Image) func(x, y int) bool {
	switch img := img.(type) {
	case *image.Gray:
		return func(x, y int) bool { return img.Pix[y*img.Stride+x] < 0x80 }
	case *image.Paletted:
		var table [256]bool
		for i, c := range img.Palette {
			table[i] = black(c)
		}
		return func(x, y int) bool { return table[img.Pix[y*img.Stride+x]] }
	}
	return func(x, y int) bool { return black(img.At(x, y)) }
}

// black reports whether a colour is nearer to black than to white when it is seen on white ground.
func black(c color.Color) bool {
	r, g, b, a := c.RGBA() // multiplied by a
	luminance := (299*r + 587*g + 114*b) / 1000
	return luminance+(0xffff-a) < 0x8000
}

// row sets dst[ix] where the pixel nearest to the point at column ix of row iy of mesh m is black.
func (p *picture) row(iy int, m solver.Mesh, dst []bool) {
	first := nearestPixel(iy, m.NY, p.height) * p.width
	for ix := range dst {
		i := first + nearestPixel(ix, m.NX, p.width)
		dst[ix] = p.bits[i/64]>>(i%64)&1 != 0
	}
}

// nearestPixel returns the pixel, of n, in which the middle of the cell of point i, of points, lies.
func nearestPixel(i, points, n int) int { return (2*i + 1) * n / (2 * points) }
