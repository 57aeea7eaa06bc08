// Package imagefile knows the formats of pictures that drawing programs, cameras and microscopes write.
package imagefile

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// What names of pictures end with, and what a picture may be, for messages.
const (
	Endings = ".png, .bmp, .tif, .tiff, .jpg or .jpeg"
	Names   = "PNG, BMP, TIFF or JPEG"
)

// Named reports whether a name ends as that of a picture.
func Named(name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	return slices.Contains([]string{".png", ".bmp", ".tif", ".tiff", ".jpg", ".jpeg"}, ending)
}

// Format is the format of a picture. Config and Decode read a file from its start; TIFF is read at places of it.
type Format struct {
	Name       string
	Config     func(io.Reader) (image.Config, error)
	Decode     func(io.Reader) (image.Image, error)
	Interlaced bool   // the file consists of passes, which are pictures of their own
	start      string // of its files
	copies     int64  // of the picture, at most, while it is decoded
}

// Of returns the format of a file, whatever its name is.
func Of(file io.ReaderAt) (f Format, ok bool) {
	head := make([]byte, 29)
	n, _ := file.ReadAt(head, 0) // reading the file reports the error
	for _, f := range []Format{
		{"PNG", png.DecodeConfig, png.Decode, head[28] != 0, "\x89PNG\r\n\x1a\n", 1},
		{"BMP", bmp.DecodeConfig, bmp.Decode, false, "BM", 1},
		{"TIFF", tiff.DecodeConfig, tiff.Decode, false, "II*\x00", 2}, // a strip may be as large as the picture
		{"TIFF", tiff.DecodeConfig, tiff.Decode, false, "MM\x00*", 2},
		{"JPEG", jpeg.DecodeConfig, jpeg.Decode, false, "\xff\xd8", 5}, // a progressive one has coefficients of 4 bytes
	} {
		if bytes.HasPrefix(head[:n], []byte(f.start)) {
			return f, true
		}
	}
	return f, false
}

// PixelBytes returns the memory of a pixel while a picture with the colours of m is decoded and, unless it has 8 bits,
// converted to these. Rows of JPEG have gaps, and are always converted.
func (f Format) PixelBytes(m color.Model) int64 {
	size, converted := int64(4), f.Name == "JPEG"
	switch m {
	case color.GrayModel:
		size = 1
	case color.YCbCrModel:
		size = 3
	case color.Gray16Model:
		size, converted = 2, true
	case color.RGBA64Model, color.NRGBA64Model:
		size, converted = 8, true
	}
	if _, ok := m.(color.Palette); ok {
		size = 1
	}
	size *= f.copies
	if converted {
		size += 4
	}
	return size
}
