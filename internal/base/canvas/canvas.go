// Package canvas draws text, rectangles and lines on pictures.
package canvas

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"sort"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Ink is the colour of text and frames.
var Ink = color.RGBA{0x22, 0x22, 0x22, 0xff}

// Typeface is one font at one size in pixels.
type Typeface struct{ font.Face }

// NewTypeface returns the font of ttf, a TrueType file, at a size in pixels.
func NewTypeface(ttf []byte, size float64) (Typeface, error) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return Typeface{}, fmt.Errorf("font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72}) // so that a point is a pixel
	if err != nil {
		return Typeface{}, fmt.Errorf("font: %w", err)
	}
	return Typeface{face}, nil
}

// Width returns the width of s in pixels.
func (t Typeface) Width(s string) int { return font.MeasureString(t.Face, s).Ceil() }

// Widest returns the width in pixels of the widest of labels.
func (t Typeface) Widest(labels []string) (pixels int) {
	for _, s := range labels {
		pixels = max(pixels, t.Width(s))
	}
	return pixels
}

// CapHeight returns the height of a capital letter or digit above the baseline, in pixels.
func (t Typeface) CapHeight() int { return t.Metrics().CapHeight.Round() }

// LineHeight returns the distance between baselines in pixels.
func (t Typeface) LineHeight() int { return t.Metrics().Height.Ceil() + 4 }

// Fit returns s, cut at its end so that it is at most the given number of pixels wide.
func (t Typeface) Fit(s string, pixels int) string {
	if t.Width(s) <= pixels {
		return s
	}
	r := []rune(s)
	n := sort.Search(len(r), func(n int) bool { return t.Width(string(r[:n+1])+"…") > pixels })
	return string(r[:n]) + "…"
}

// Canvas is a picture being drawn; (0, 0) is its upper left pixel.
type Canvas struct{ *image.RGBA }

// New returns a white canvas.
func New(width, height int) Canvas {
	c := Canvas{image.NewRGBA(image.Rect(0, 0, width, height))}
	for i := range c.Pix {
		c.Pix[i] = 0xff
	}
	return c
}

// Fill fills r.
func (c Canvas) Fill(r image.Rectangle, col color.Color) {
	draw.Draw(c.RGBA, r, image.NewUniform(col), image.Point{}, draw.Src)
}

// Frame draws a line of one pixel around r, outside of it.
func (c Canvas) Frame(r image.Rectangle) {
	o := r.Inset(-1)
	c.Fill(image.Rect(o.Min.X, o.Min.Y, o.Max.X, r.Min.Y), Ink)
	c.Fill(image.Rect(o.Min.X, r.Max.Y, o.Max.X, o.Max.Y), Ink)
	c.Fill(image.Rect(o.Min.X, o.Min.Y, r.Min.X, o.Max.Y), Ink)
	c.Fill(image.Rect(r.Max.X, o.Min.Y, o.Max.X, o.Max.Y), Ink)
}

// Alignment places a text relative to a point.
type Alignment float64

// Where a text is placed: right of the point, centred on it, left of it.
const (
	RightOf Alignment = 0
	Centred Alignment = 0.5
	LeftOf  Alignment = 1
)

// The length of a tick, and the gap between a tick and its label, in pixels.
const (
	TickSize = 7
	TickGap  = 6
)

// Text writes s with its baseline at y and returns the x coordinate of its end.
func (c Canvas) Text(t Typeface, s string, x, y int, a Alignment, col color.Color) int {
	start := x - int(float64(t.Width(s))*float64(a))
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(col), Face: t.Face, Dot: fixed.P(start, y)}
	d.DrawString(s)
	return d.Dot.X.Ceil()
}
