package problem

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"runtime/debug"

	"jacobi/configs"
	"jacobi/internal/base/imagefile"
	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// picture is a picture in black and white. Black has the number 1.
type picture struct {
	*raster
	bytes int64 // of memory, while it was read
}

// Limits of a picture file and of the memory that it takes while it is read.
const (
	maxPictureFile  = 1 << 28
	maxPictureBytes = 1 << 28
	largePicture    = 1 << 24 // for which memory is looked at before
)

// openPicture reads the picture at path for a mesh. A pixel is black if its luminance on white ground is below half.
func openPicture(ctx context.Context, path string, m solver.Mesh) (*picture, error) {
	img, bytes, err := readPicture(ctx, path)
	if err != nil {
		return nil, err
	}
	defer forget(bytes)
	return newPicture(ctx, img, bytes, m)
}

// forget gives back the memory of an image that is no longer needed.
func forget(bytes int64) {
	if bytes >= largePicture {
		debug.FreeOSMemory()
	}
}

// readPicture reads the picture at path, in 8 bits and in rows without gaps, unless ctx ends before. bytes is the
// memory that this takes.
func readPicture(ctx context.Context, path string) (img image.Image, bytes int64, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, errors.Unwrap(err) // the caller names the path
	}
	defer f.Close()
	file := io.NewSectionReader(f, 0, maxPictureFile)
	format, ok := imagefile.Of(file)
	if !ok {
		return nil, 0, fmt.Errorf("it is not a %s picture", imagefile.Names)
	}
	config, err := format.Config(file)
	if err != nil {
		return nil, 0, err
	}
	pixel, kind, grey := format.PixelBytes(config.ColorModel), "", "8-bit grey"
	if format.Name != "PNG" {
		grey += " as PNG"
	}
	if format.Interlaced {
		pixel, kind, grey = 2*pixel, "interlaced ", grey+" without interlacing"
	}
	pixels := int64(config.Width) * int64(config.Height)
	if pixels > maxPictureBytes/pixel {
		return nil, 0, fmt.Errorf("a picture of %d x %d %spixels takes %d MiB; at most %d MiB are allowed, which is "+
			"16384 x 16384 pixels of %s", config.Width, config.Height, kind,
			int64(float64(pixels)*float64(pixel)/(1<<20)), maxPictureBytes>>20, grey)
	}
	if bytes = pixels * pixel; bytes >= largePicture {
		if err := configs.CheckMemory(bytes); err != nil {
			return nil, 0, fmt.Errorf("a picture of %d x %d pixels: %w", config.Width, config.Height, err)
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, 0, err
	}
	img, err = format.Decode(heeding{ctx, file, bufio.NewReader(file)})
	if err := ended(ctx); err != nil {
		return nil, 0, err
	}
	if err != nil {
		return nil, 0, fmt.Errorf("not a complete %s file of at most %d MiB: %w", format.Name, maxPictureFile>>20, err)
	}
	if values, _ := values8(img); values == nil {
		plain := image.NewRGBA(image.Rect(0, 0, config.Width, config.Height))
		draw.Draw(plain, plain.Rect, img, img.Bounds().Min, draw.Src)
		img = plain
	}
	return img, bytes, nil
}

// heeding is a reader that fails once ctx has ended.
type heeding struct {
	ctx context.Context
	io.ReaderAt
	io.Reader
}

// Read implements io.Reader.
func (r heeding) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// ReadAt implements io.ReaderAt, by which TIFF is read.
func (r heeding) ReadAt(b []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.ReaderAt.ReadAt(b, at)
}

// newPicture takes the colours of an image, for which that many bytes were read, unless ctx ends before.
func newPicture(ctx context.Context, img image.Image, read int64, m solver.Mesh) (*picture, error) {
	size := img.Bounds().Size()
	pixels := make([]uint8, size.X*size.Y)
	at := blackness(img)
	for y := range size.Y {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		for x := range size.X {
			if at(x, y) {
				pixels[y*size.X+x] = 1
			}
		}
	}
	across, down := axes(m)
	return &picture{newRaster(size.X, size.Y, pixels, across, down), read + int64(len(pixels))}, nil
}

// axes returns the directions of a mesh.
func axes(m solver.Mesh) (across, down axis) {
	nx, ny := intervals(m)
	return axis{nx, m.PeriodicColumns()}, axis{ny, m.PeriodicRows()}
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
