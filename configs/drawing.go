package configs

import (
	"bufio"
	"image"
	"image/png"

	"jacobi/internal/base/regular"
)

// pictureSize returns the width and the height of the PNG picture at path, in pixels.
func pictureSize(path string) (image.Point, error) {
	f, err := regular.Open(path)
	if err != nil {
		return image.Point{}, err
	}
	defer f.Close()
	c, err := png.DecodeConfig(bufio.NewReader(f))
	return image.Pt(c.Width, c.Height), err
}
