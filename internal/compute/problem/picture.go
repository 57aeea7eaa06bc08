package problem

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"runtime/debug"

	"jacobi/configs"
	"jacobi/internal/base/imagefile"
	"jacobi/internal/base/regular"
	"jacobi/solver"
)

// picture is a picture in black and white. Black has the number 1. Pixels at edges between the two may be divided.
// Others are black if their luminance on white ground is below half.
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

// openPicture reads the picture at path for a mesh.
func openPicture(ctx context.Context, path string, m solver.Mesh) (*picture, error) {
	img, bytes, lossy, err := readPicture(ctx, path)
	if err != nil {
		return nil, err
	}
	defer forget(bytes)
	return newPicture(ctx, img, bytes, lossy, m)
}

// forget gives back the memory of an image that is no longer needed.
func forget(bytes int64) {
	if bytes >= largePicture {
		debug.FreeOSMemory()
	}
}

// readPicture reads the picture at path, in 8 bits and in rows without gaps, unless ctx ends before. bytes is the
// memory that this takes. A lossy one has colours that are not exact.
func readPicture(ctx context.Context, path string) (img image.Image, bytes int64, lossy bool, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, false, errors.Unwrap(err) // the caller names the path
	}
	defer f.Close()
	file := io.NewSectionReader(f, 0, maxPictureFile)
	format, ok := imagefile.Of(file)
	if !ok {
		return nil, 0, false, fmt.Errorf("it is not a %s picture", imagefile.Names)
	}
	config, err := format.Config(file)
	if err != nil {
		return nil, 0, false, err
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
		return nil, 0, false, fmt.Errorf("a picture of %d x %d %spixels takes %d MiB; at most %d MiB are allowed, "+
			"which is 16384 x 16384 pixels of %s", config.Width, config.Height, kind,
			int64(float64(pixels)*float64(pixel)/(1<<20)), maxPictureBytes>>20, grey)
	}
	if bytes = pixels * pixel; bytes >= largePicture {
		if err := configs.CheckMemory(bytes); err != nil {
			return nil, 0, false, fmt.Errorf("a picture of %d x %d pixels: %w", config.Width, config.Height, err)
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, 0, false, err
	}
	img, err = format.Decode(heeding{ctx, file, bufio.NewReader(file)})
	if err := ended(ctx); err != nil {
		return nil, 0, false, err
	}
	if err != nil {
		return nil, 0, false, fmt.Errorf("not a complete %s file of at most %d MiB: %w", format.Name,
			maxPictureFile>>20, err)
	}
	if values, _ := values8(img); values == nil {
		plain := image.NewRGBA(image.Rect(0, 0, config.Width, config.Height))
		draw.Draw(plain, plain.Rect, img, img.Bounds().Min, draw.Src)
		img = plain
	}
	return img, bytes, format.Name == "JPEG", nil
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

// newPicture takes the colours of an image, for which that many bytes were read, unless ctx ends before. The
// edges of a lossy one are those of its pixels.
func newPicture(ctx context.Context, img image.Image, read int64, lossy bool, m solver.Mesh) (*picture, error) {
	across, down := axes(m)
	mix := &mixture{image: img, across: across, down: down, listed: [][3]uint8{{0xff, 0xff, 0xff}, {}}, both: true}
	mix.colour = func(x, y int) (c [3]uint8, opaque bool) {
		r, g, b, a := img.At(x, y).RGBA() // multiplied by a
		white := 0xffff - a
		c = [3]uint8{uint8((r + white) >> 8), uint8((g + white) >> 8), uint8((b + white) >> 8)}
		if lossy {
			c = mix.listed[blackness(c)]
		}
		return c, true
	}
	mix.other = func(c [3]uint8, _, _ int) (uint8, error) { return blackness(c), nil }
	if err := mix.read(ctx); err != nil {
		return nil, err
	}
	return &picture{newRaster(mix), read + mix.bytes()}, nil
}

// axes returns the directions of a mesh.
func axes(m solver.Mesh) (across, down axis) {
	nx, ny := intervals(m)
	return axis{nx, m.PeriodicColumns()}, axis{ny, m.PeriodicRows()}
}

// blackness is 1 for a colour that is nearer to black than to white.
func blackness(c [3]uint8) uint8 {
	return uint8(truth((299*int(c[0])+587*int(c[1])+114*int(c[2]))*0x101/1000 < 0x8000))
}
