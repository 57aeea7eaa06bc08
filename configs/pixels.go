package configs

import (
	"bufio"
	"image"
	"image/png"
	"path/filepath"
	"strings"

	"jacobi/internal/base/regular"
)

// pictureSize returns the pixels of the picture that says which points are fixed. If there is none, or it cannot be
// read, ok is false; opening the problem says why.
func (p Problem) pictureSize() (size image.Point, ok bool) {
	for _, name := range []string{p.Drawing, p.Fixed} { // which do not go together
		if !strings.EqualFold(filepath.Ext(name), ".png") {
			continue
		}
		if f, err := regular.Open(name); err == nil {
			defer f.Close()
			c, err := png.DecodeConfig(bufio.NewReader(f))
			return image.Pt(c.Width, c.Height), err == nil
		}
	}
	return image.Point{}, false
}
