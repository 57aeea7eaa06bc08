package output

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"sort"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint = color.RGBA{0x5f, 0x5f, 0x5f, 0xff}
	alarm = color.RGBA{0xc6, 0x28, 0x28, 0xff}
)

// typeface is one font at one size in pixels.
type typeface struct{ font.Face }

// typefaces are the fonts of a picture.
type typefaces struct{ title, caption, tick typeface }

// textSizes are the sizes of the fonts of a picture, in pixels.
type textSizes struct{ title, caption, tick float64 }

var pictureText = textSizes{30, 20, 18}

func newTypefaces(s textSizes) (typefaces, error) {
	var t typefaces
	for _, f := range []struct {
		face *typeface
		ttf  []byte
		size float64
	}{{&t.title, gobold.TTF, s.title}, {&t.caption, goregular.TTF, s.caption}, {&t.tick, goregular.TTF, s.tick}} {
		parsed, err := opentype.Parse(f.ttf)
		if err != nil {
			return t, fmt.Errorf("font: %w", err)
		}
		// At 72 dots per inch a point is a pixel.
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: f.size, DPI: 72})
		if err != nil {
			return t, fmt.Errorf("font: %w", err)
		}
		*f.face = typeface{face}
	}
	return t, nil
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

// canvas is a picture being drawn; (0, 0) is its upper left pixel.
type canvas struct{ *image.RGBA }

func newCanvas(width, height int) canvas {
	c := canvas{image.NewRGBA(image.Rect(0, 0, width, height))}
	for i := range c.Pix { // white
		c.Pix[i] = 0xff
	}
	return c
}

func (c canvas) fill(r image.Rectangle, col color.Color) {
	draw.Draw(c.RGBA, r, image.NewUniform(col), image.Point{}, draw.Src)
}

// frame draws a line of one pixel around r, outside of it.
func (c canvas) frame(r image.Rectangle) {
	o := r.Inset(-1)
	c.fill(image.Rect(o.Min.X, o.Min.Y, o.Max.X, r.Min.Y), ink)
	c.fill(image.Rect(o.Min.X, r.Max.Y, o.Max.X, o.Max.Y), ink)
	c.fill(image.Rect(o.Min.X, o.Min.Y, r.Min.X, o.Max.Y), ink)
	c.fill(image.Rect(r.Max.X, o.Min.Y, o.Max.X, o.Max.Y), ink)
}

// alignment places a text relative to a point: 0 right of the point, 1 left of it, 0.5 centred on it.
type alignment float64

const (
	rightOf  alignment = 0
	centred  alignment = 0.5
	leftOf   alignment = 1
	tickSize           = 7
	tickGap            = 6 // between a tick and its label
)

// text writes s with its baseline at y and returns the x coordinate of its end.
func (c canvas) text(t typeface, s string, x, y int, a alignment, col color.Color) int {
	start := x - int(float64(t.width(s))*float64(a))
	d := font.Drawer{Dst: c.RGBA, Src: image.NewUniform(col), Face: t.Face, Dot: fixed.P(start, y)}
	d.DrawString(s)
	return d.Dot.X.Ceil()
}
