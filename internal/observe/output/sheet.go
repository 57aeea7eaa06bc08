package output

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"sort"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// typeface is one font at one size in pixels.
type typeface struct{ font.Face }

// newTypeface returns the font of ttf, a TrueType file, at a size in pixels.
func newTypeface(ttf []byte, size float64) (typeface, error) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return typeface{}, fmt.Errorf("font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72}) // so that a point is a pixel
	if err != nil {
		return typeface{}, fmt.Errorf("font: %w", err)
	}
	return typeface{face}, nil
}

// width returns the width of s in pixels.
func (t typeface) width(s string) int { return font.MeasureString(t.Face, s).Ceil() }

// widest returns the width in pixels of the widest of labels.
func (t typeface) widest(labels []string) (pixels int) {
	for _, s := range labels {
		pixels = max(pixels, t.width(s))
	}
	return pixels
}

// capHeight returns the height of a capital letter or digit above the baseline, in pixels.
func (t typeface) capHeight() int { return t.Metrics().CapHeight.Round() }

// lineHeight returns the distance between baselines in pixels.
func (t typeface) lineHeight() int { return t.Metrics().Height.Ceil() + 4 }

// fit returns s, cut at its end so that it is at most the given number of pixels wide.
func (t typeface) fit(s string, pixels int) string {
	if t.width(s) <= pixels {
		return s
	}
	r := []rune(s)
	n := sort.Search(len(r), func(n int) bool { return t.width(string(r[:n+1])+"…") > pixels })
	return string(r[:n]) + "…"
}

// sheet is a picture being drawn; (0, 0) is its upper left pixel.
type sheet struct{ *image.RGBA }

// newSheet returns a white picture.
func newSheet(size image.Point) sheet {
	white := bytes.Repeat([]byte{0xff}, 4*size.X*size.Y) // faster than to fill what NewRGBA clears
	return sheet{&image.RGBA{Pix: white, Stride: 4 * size.X, Rect: image.Rectangle{Max: size}}}
}

// fill fills r.
func (pic sheet) fill(r image.Rectangle, col color.Color) {
	draw.Draw(pic.RGBA, r, image.NewUniform(col), image.Point{}, draw.Src)
}

// frame draws a line of one pixel around r, outside of it.
func (pic sheet) frame(r image.Rectangle) {
	o := r.Inset(-1)
	pic.fill(image.Rect(o.Min.X, o.Min.Y, o.Max.X, r.Min.Y), ink)
	pic.fill(image.Rect(o.Min.X, r.Max.Y, o.Max.X, o.Max.Y), ink)
	pic.fill(image.Rect(o.Min.X, o.Min.Y, r.Min.X, o.Max.Y), ink)
	pic.fill(image.Rect(r.Max.X, o.Min.Y, o.Max.X, o.Max.Y), ink)
}

// alignment places a text relative to a point.
type alignment float64

// Where a text is placed: right of the point, centred on it, left of it.
const (
	rightOf alignment = 0
	centred alignment = 0.5
	leftOf  alignment = 1
)

// The length of a tick, and the gap between a tick and its label, in pixels.
const (
	tickSize = 7
	tickGap  = 6
)

// text writes s with its baseline at y and returns the x coordinate of its end.
func (pic sheet) text(t typeface, s string, x, y int, a alignment, col color.Color) int {
	start := x - int(float64(t.width(s))*float64(a))
	d := font.Drawer{Dst: pic.RGBA, Src: image.NewUniform(col), Face: t.Face, Dot: fixed.P(start, y)}
	d.DrawString(s)
	return d.Dot.X.Ceil()
}
