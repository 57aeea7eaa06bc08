package configs

import (
	"bufio"
	"cmp"
	"fmt"
	"image"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"jacobi/internal/base/npy"
	"jacobi/internal/base/regular"
)

// size returns the size of the first file that the problem reads: the pixels of a picture, or the columns and rows of
// an array. If there is none, or it cannot be read, ok is false; opening the problem says why.
func (p Problem) size() (size image.Point, ok bool) {
	for _, name := range []string{p.Drawing, p.Fixed, p.Coefficient, p.Source, p.Initial, p.Screening} {
		var read func(io.Reader) (image.Point, error)
		switch strings.ToLower(filepath.Ext(name)) {
		case ".png":
			read = pictureSize
		case ".npy":
			read = arraySize
		default:
			continue
		}
		if f, err := regular.Open(name); err == nil {
			defer f.Close()
			size, err = read(bufio.NewReader(f))
			return size, err == nil
		}
	}
	x, y := lineSize(p.Top, p.Bottom), lineSize(p.Left, p.Right)
	return image.Pt(cmp.Or(x, y), cmp.Or(y, x)), x+y > 0
}

// lineSize returns the number of values in the first array of those of two sides; 0 without one.
func lineSize(sides ...string) (points int) {
	for _, name := range sides {
		if !strings.EqualFold(filepath.Ext(name), ".npy") {
			continue
		}
		if f, err := regular.Open(name); err == nil {
			defer f.Close()
			h, _ := npy.ReadHeader(bufio.NewReader(f)) // opening the problem says what is wrong
			_, _ = fmt.Sscanf(h.Shape, "(%d,)", &points)
			return points
		}
	}
	return 0
}

func pictureSize(r io.Reader) (image.Point, error) {
	c, err := png.DecodeConfig(r)
	return image.Pt(c.Width, c.Height), err
}

func arraySize(r io.Reader) (size image.Point, err error) {
	h, err := npy.ReadHeader(r)
	if err == nil {
		_, err = fmt.Sscanf(h.Shape, "(%d, %d)", &size.Y, &size.X)
	}
	return size, err
}
