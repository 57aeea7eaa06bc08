package output

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"jacobi/internal/base/parallel"
)

// Caption is the text of a picture about its run, the scale of its colours, and the lines over them.
type Caption struct {
	Title       string // the problem's name
	Sweeps      int
	Step        string  // what Sweeps counts, "sweep" or "cycle"
	Norm        float64 // of the last sweep; NaN if there is none
	Stalled     bool    // see solver.Stalled
	Interrupted bool
	Scale       string // ScaleAuto, ScaleLinear, ScaleLog or ScaleSqrt
	Contours    int    // number of contour lines
	// Outlines are lines along x or y over the field, those of problem.Outlines: x and y of both ends, in points of the
	// mesh.
	Outlines [][4]float64
}

// jpegQuality is high enough to keep lines and letters sharp.
const jpegQuality = 95

// pictureBytes returns an upper bound on the size of a mesh's picture: uncompressed pixels with wide margins.
func pictureBytes(g grid) int64 {
	const margins, overhead = 440, 16 << 10
	s := newScale(g)
	pixels := int64(s.x.length(g.nx)+margins) * int64(s.y.length(g.ny)+margins)
	return 3*pixels + overhead
}

// EncodePicture draws t, which must have all rows of the mesh. The extension of name chooses the format, PNG or JPEG.
func EncodePicture(name string, t *Thumbnail, c Caption) ([]byte, error) {
	var b bytes.Buffer
	img, err := t.Draw(c)
	switch {
	case err != nil:
	case strings.EqualFold(filepath.Ext(name), ".png"):
		err = writePNG(&b, img)
	default: // configs allows no other extension
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: jpegQuality})
	}
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	return b.Bytes(), nil
}

// WritePicture writes an encoded picture to f and closes f.
func WritePicture(f File, name string, data []byte) (FileReport, error) {
	if err := write(f, data); err != nil {
		return FileReport{}, fmt.Errorf("write picture: %w", err)
	}
	return fileOf(name, data), nil
}

// Distances in pixels.
const (
	margin       = 32
	barGap       = 36 // between the mesh and the colour bar
	barWidth     = 28
	minTextWidth = 440 // of the text above the mesh
)

// layout holds the positions of the parts of a picture.
type layout struct {
	size  image.Point
	mesh  image.Rectangle
	bar   image.Rectangle
	title string
	lines [][]string // the caption: the parts of each line
	// The ticks of the bar, and the contours.
	values   []float64
	labels   []string
	contours contours
}

// Draw returns the heat map of t, which must have all rows of the mesh. Row 0 is on top. The picture has axes, a colour
// bar and a caption.
func (t *Thumbnail) Draw(c Caption) (*image.RGBA, error) {
	cells, err := t.cells()
	if err != nil {
		return nil, err
	}
	col, err := newColours(newColourScale(c.Scale, cells, t.min, t.max, rounding(t.mesh.DType)))
	if err != nil {
		return nil, err
	}
	faces, err := newTypefaces()
	if err != nil {
		return nil, err
	}
	l := t.layout(c, col, faces)
	pic := newSheet(l.size)
	pic.heading(l, faces)
	pic.mesh(l.mesh, cells, col)
	pic.contours(l.mesh, cells, t.scale, l.contours, col)
	pic.outlines(l.mesh, t.scale, c.Outlines)
	pic.axes(l.mesh, t, faces.tick)
	pic.bar(l, col, faces.tick)
	return pic.RGBA, nil
}

// layout returns the places of everything in a picture.
func (t *Thumbnail) layout(c Caption, col *colours, faces typefaces) layout {
	meshSize := image.Pt(t.scale.x.length(t.mesh.NX), t.scale.y.length(t.mesh.NY))
	l := layout{contours: newContours(c.Contours, col.colourScale, t.min, t.max, rounding(t.mesh.DType))}
	l.values, l.labels = col.ticks(max(4, min(meshSize.Y/70, 10)))
	_, yLabels := t.yTicks(meshSize.Y, faces.tick)
	left := margin + faces.tick.width("y") + faces.tick.widest(yLabels) + 3*tickGap + tickSize
	right := tickSize + tickGap + faces.tick.widest(l.labels) + margin
	width := max(left+meshSize.X+barGap+barWidth+right, left+minTextWidth+margin)

	l.lines = wrap(t.captionParts(c, col, l.contours), faces.caption, width-left-margin)
	l.title = faces.title.fit(c.Title, width-left-margin)
	top := margin + faces.title.lineHeight() + len(l.lines)*faces.caption.lineHeight() + 14
	l.mesh = image.Rectangle{Max: meshSize}.Add(image.Pt(left, top))
	l.bar = image.Rect(l.mesh.Max.X+barGap, top, l.mesh.Max.X+barGap+barWidth, l.mesh.Max.Y)
	bottom := tickSize + tickGap + 2*faces.tick.lineHeight() + margin/2
	l.size = image.Pt(width, l.mesh.Max.Y+bottom)
	return l
}

const (
	separator   = "  •  "
	interrupted = "interrupted"
)

func (t *Thumbnail) captionParts(c Caption, col *colours, lines contours) []string {
	parts := []string{
		fmt.Sprintf("%d × %d", t.mesh.NX, t.mesh.NY),
		t.mesh.DType.String(),
		plural(c.Sweeps, cmp.Or(c.Step, "sweep")),
	}
	if !math.IsNaN(c.Norm) {
		parts = append(parts, fmt.Sprintf("L2 norm %.6g", c.Norm))
	}
	if stretched := t.scale.caption(t.grid()); stretched != "" {
		parts = append(parts, stretched)
	}
	if scale := col.caption(); scale != "" {
		parts = append(parts, scale)
	}
	if levels := lines.caption(t.min, t.max); levels != "" {
		parts = append(parts, levels)
	}
	if c.Stalled {
		parts = append(parts, "stalled")
	}
	if c.Interrupted {
		parts = append(parts, interrupted)
	}
	return parts
}

// plural returns "1 sweep" or "2,000 sweeps".
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return humanize.Comma(int64(n)) + " " + what
}

// wrap arranges parts into lines of at most the given number of pixels. A part that is wider gets its own line.
func wrap(parts []string, t typeface, pixels int) [][]string {
	var lines [][]string
	for _, p := range parts {
		if n := len(lines); n > 0 && t.width(strings.Join(append(lines[n-1 : n : n][0], p), separator)) <= pixels {
			lines[n-1] = append(lines[n-1], p)
		} else {
			lines = append(lines, []string{p})
		}
	}
	return lines
}

func (pic sheet) heading(l layout, faces typefaces) {
	y := margin + faces.title.capHeight()
	pic.text(faces.title, l.title, l.mesh.Min.X, y, rightOf, ink)
	y += 8
	for _, parts := range l.lines {
		y += faces.caption.lineHeight()
		x := l.mesh.Min.X
		for i, p := range parts {
			if i > 0 {
				x = pic.text(faces.caption, separator, x, y, rightOf, faint)
			}
			if p == interrupted {
				x = pic.text(faces.caption, p, x, y, rightOf, alarm)
			} else {
				x = pic.text(faces.caption, p, x, y, rightOf, faint)
			}
		}
	}
}

// mesh draws the field: of each pixel the cell in which its middle lies.
func (pic sheet) mesh(r image.Rectangle, cells [][]float64, col *colours) {
	within := func(pixel, pixels, cells int) int { return (2*pixel + 1) * cells / (2 * pixels) }
	_ = parallel.Each(r.Dy(), func(y int) error { // never fails
		line, last, shade := cells[within(y, r.Dy(), len(cells))], -1, color.RGBA{}
		pix := pic.Pix[pic.PixOffset(r.Min.X, r.Min.Y+y):][:4*r.Dx()]
		for x := range r.Dx() {
			if c := within(x, r.Dx(), len(line)); c != last {
				last, shade = c, col.of(line[c])
			}
			pix[4*x], pix[4*x+1], pix[4*x+2], pix[4*x+3] = shade.R, shade.G, shade.B, shade.A
		}
		return nil
	})
	pic.frame(r)
}

// axes draws the x and y axes, which show the distances from the first column and the first row. Like the rows, y
// increases downwards.
func (pic sheet) axes(r image.Rectangle, t *Thumbnail, face typeface) {
	below := r.Max.Y + tickSize + tickGap + face.capHeight()
	values, labels := t.xTicks(r.Dx(), face)
	for i, v := range values {
		x := r.Min.X + t.scale.x.pixel(v/t.hx, t.mesh.NX)
		pic.fill(image.Rect(x, r.Max.Y, x+1, r.Max.Y+tickSize), ink)
		pic.text(face, labels[i], x, below, centred, ink)
	}
	pic.text(face, "x", r.Min.X+r.Dx()/2, below+face.lineHeight(), centred, ink)

	values, labels = t.yTicks(r.Dy(), face)
	for i, v := range values {
		y := r.Min.Y + t.scale.y.pixel(v/t.hy, t.mesh.NY)
		pic.fill(image.Rect(r.Min.X-tickSize, y, r.Min.X, y+1), ink)
		pic.text(face, labels[i], r.Min.X-tickSize-tickGap, y+face.capHeight()/2, leftOf, ink)
	}
	left := r.Min.X - tickSize - 3*tickGap - face.widest(labels)
	pic.text(face, "y", left, r.Min.Y+r.Dy()/2+face.capHeight()/2, leftOf, ink)
}

// xTicks returns the ticks of an x axis of the given number of pixels, with room for their labels.
func (t *Thumbnail) xTicks(pixels int, face typeface) ([]float64, []string) {
	return axisTicks(float64(t.mesh.NX-1)*t.hx, pixels, face.widest)
}

// yTicks returns the ticks of the y axis.
func (t *Thumbnail) yTicks(pixels int, face typeface) ([]float64, []string) {
	return axisTicks(float64(t.mesh.NY-1)*t.hy, pixels, func([]string) int { return face.lineHeight() })
}

// axisTicks returns ticks from 0 to a length on an axis of the given number of pixels, with room for their labels.
func axisTicks(length float64, pixels int, room func(labels []string) int) (values []float64, labels []string) {
	for steps := max(2, min(pixels/80, 5)); steps > 0; steps /= 2 {
		values, labels = ticksOf(0, length, roundStep(0.9*length/float64(steps)), steps+1)
		if len(labels)*(room(labels)+tickGap) <= pixels {
			break
		}
	}
	return values, labels
}

// bar draws the colour bar and its ticks.
func (pic sheet) bar(l layout, col *colours, face typeface) {
	r := l.bar
	last := r.Dy() - 1
	for i := range r.Dy() {
		shade := col.table[(last-i)*(shades-1)/last]
		pic.fill(image.Rect(r.Min.X, r.Min.Y+i, r.Max.X, r.Min.Y+i+1), shade)
	}
	pic.frame(r)
	for i, v := range l.values {
		y := r.Max.Y - 1 - int(math.Round(col.at(v)*float64(last)))
		pic.fill(image.Rect(r.Max.X, y, r.Max.X+tickSize, y+1), ink)
		pic.text(face, l.labels[i], r.Max.X+tickSize+tickGap, y+face.capHeight()/2, rightOf, ink)
	}
}

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint = color.RGBA{0x5f, 0x5f, 0x5f, 0xff}
	alarm = color.RGBA{0xc6, 0x28, 0x28, 0xff}
)

// typefaces are the fonts of a picture.
type typefaces struct{ title, caption, tick typeface }

func newTypefaces() (t typefaces, err error) {
	for _, f := range []struct {
		face *typeface
		ttf  []byte
		size float64 // in pixels
	}{{&t.title, gobold.TTF, 30}, {&t.caption, goregular.TTF, 20}, {&t.tick, goregular.TTF, 18}} {
		if *f.face, err = newTypeface(f.ttf, f.size); err != nil {
			return t, err
		}
	}
	return t, nil
}
