package output

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"jacobi/internal/base/canvas"
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
	return t.paint(t.plan(c, col, faces), cells, col, faces, c), nil
}

// plan returns the places of everything in a picture.
func (t *Thumbnail) plan(c Caption, col *colours, faces typefaces) layout {
	meshSize := image.Pt(t.scale.x.length(t.mesh.NX), t.scale.y.length(t.mesh.NY))
	_, labels := col.barTicks(meshSize.Y)
	lines := newContours(c.Contours, col.colourScale, t.min, t.max, rounding(t.mesh.DType))
	return t.layout(c.Title, t.captionParts(c, col, lines), faces, meshSize, labels)
}

// barTicks returns the ticks of a colour bar of a height in pixels.
func (c *colours) barTicks(height int) ([]float64, []string) {
	return c.ticks(max(4, min(height/70, 10)))
}

// paint draws cells as l has it.
func (t *Thumbnail) paint(l layout, cells [][]float64, col *colours, faces typefaces, c Caption) *image.RGBA {
	values, labels := col.barTicks(l.mesh.Dy())
	lines := newContours(c.Contours, col.colourScale, t.min, t.max, rounding(t.mesh.DType))
	pic := sheet{canvas.New(l.size.X, l.size.Y)}
	pic.heading(l, faces)
	pic.mesh(l.mesh, cells, t.scale, col)
	pic.contours(l.mesh, cells, t.scale, lines, col)
	pic.outlines(l.mesh, t.scale, c.Outlines)
	pic.axes(l.mesh, t, faces.tick)
	pic.bar(l.bar, col, faces.tick, values, labels)
	return pic.RGBA
}

func (t *Thumbnail) layout(title string, caption []string, faces typefaces, meshSize image.Point, barLabels []string,
) layout {
	_, yLabels := t.yTicks(meshSize.Y, faces.tick)
	left := margin + faces.tick.Width("y") + faces.tick.Widest(yLabels) + 3*canvas.TickGap + canvas.TickSize
	right := canvas.TickSize + canvas.TickGap + faces.tick.Widest(barLabels) + margin
	width := max(left+meshSize.X+barGap+barWidth+right, left+minTextWidth+margin)

	l := layout{lines: wrap(caption, faces.caption, width-left-margin)}
	l.title = faces.title.Fit(title, width-left-margin)
	top := margin + faces.title.LineHeight() + len(l.lines)*faces.caption.LineHeight() + 14
	l.mesh = image.Rectangle{Max: meshSize}.Add(image.Pt(left, top))
	l.bar = image.Rect(l.mesh.Max.X+barGap, top, l.mesh.Max.X+barGap+barWidth, l.mesh.Max.Y)
	bottom := canvas.TickSize + canvas.TickGap + 2*faces.tick.LineHeight() + margin/2
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
func wrap(parts []string, t canvas.Typeface, pixels int) [][]string {
	var lines [][]string
	for _, p := range parts {
		if n := len(lines); n > 0 && t.Width(strings.Join(append(lines[n-1 : n : n][0], p), separator)) <= pixels {
			lines[n-1] = append(lines[n-1], p)
		} else {
			lines = append(lines, []string{p})
		}
	}
	return lines
}

func (pic sheet) heading(l layout, faces typefaces) {
	y := margin + faces.title.CapHeight()
	pic.Text(faces.title, l.title, l.mesh.Min.X, y, canvas.RightOf, ink)
	y += 8
	for _, parts := range l.lines {
		y += faces.caption.LineHeight()
		x := l.mesh.Min.X
		for i, p := range parts {
			if i > 0 {
				x = pic.Text(faces.caption, separator, x, y, canvas.RightOf, faint)
			}
			if p == interrupted {
				x = pic.Text(faces.caption, p, x, y, canvas.RightOf, alarm)
			} else {
				x = pic.Text(faces.caption, p, x, y, canvas.RightOf, faint)
			}
		}
	}
}

func (pic sheet) mesh(r image.Rectangle, cells [][]float64, s scale, col *colours) {
	bands := min(r.Dy(), runtime.GOMAXPROCS(0))
	_ = parallel.Each(bands, func(b int) error { // never fails
		pic.band(r, r.Dy()*b/bands, r.Dy()*(b+1)/bands, cells, s, col)
		return nil
	})
	pic.Frame(r)
}

// band draws rows [lo, hi) of pixels of the mesh.
func (pic sheet) band(r image.Rectangle, lo, hi int, cells [][]float64, s scale, col *colours) {
	shades, shown := make([]color.RGBA, len(cells[0])), -1
	for y := lo; y < hi; y++ {
		row := pic.Pix[pic.PixOffset(r.Min.X, r.Min.Y+y):][:4*r.Dx()]
		i := s.y.cell(y, len(cells))
		if i == shown {
			copy(row, pic.Pix[pic.PixOffset(r.Min.X, r.Min.Y+y-1):])
			continue
		}
		shown = i
		for c, v := range cells[i] {
			shades[c] = col.of(v)
		}
		for x := range r.Dx() {
			shade := shades[s.x.cell(x, len(shades))]
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = shade.R, shade.G, shade.B, shade.A
		}
	}
}

// axes draws the x and y axes, which show the distances from the first column and the first row. Like the rows, y
// increases downwards.
func (pic sheet) axes(r image.Rectangle, t *Thumbnail, face canvas.Typeface) {
	below := r.Max.Y + canvas.TickSize + canvas.TickGap + face.CapHeight()
	values, labels := t.xTicks(r.Dx(), face)
	for i, v := range values {
		x := r.Min.X + t.scale.x.pixel(v/t.hx, t.mesh.NX)
		pic.Fill(image.Rect(x, r.Max.Y, x+1, r.Max.Y+canvas.TickSize), ink)
		pic.Text(face, labels[i], x, below, canvas.Centred, ink)
	}
	pic.Text(face, "x", r.Min.X+r.Dx()/2, below+face.LineHeight(), canvas.Centred, ink)

	values, labels = t.yTicks(r.Dy(), face)
	for i, v := range values {
		y := r.Min.Y + t.scale.y.pixel(v/t.hy, t.mesh.NY)
		pic.Fill(image.Rect(r.Min.X-canvas.TickSize, y, r.Min.X, y+1), ink)
		pic.Text(face, labels[i], r.Min.X-canvas.TickSize-canvas.TickGap, y+face.CapHeight()/2, canvas.LeftOf, ink)
	}
	left := r.Min.X - canvas.TickSize - 3*canvas.TickGap - face.Widest(labels)
	pic.Text(face, "y", left, r.Min.Y+r.Dy()/2+face.CapHeight()/2, canvas.LeftOf, ink)
}

// xTicks returns the ticks of an x axis of the given number of pixels, with room for their labels.
func (t *Thumbnail) xTicks(pixels int, face canvas.Typeface) ([]float64, []string) {
	return axisTicks(float64(t.mesh.NX-1)*t.hx, pixels, face.Widest)
}

// yTicks returns the ticks of the y axis.
func (t *Thumbnail) yTicks(pixels int, face canvas.Typeface) ([]float64, []string) {
	return axisTicks(float64(t.mesh.NY-1)*t.hy, pixels, func([]string) int { return face.LineHeight() })
}

// axisTicks returns ticks from 0 to a length on an axis of the given number of pixels, with room for their labels.
func axisTicks(length float64, pixels int, room func(labels []string) int) (values []float64, labels []string) {
	for steps := max(2, min(pixels/80, 5)); steps > 0; steps /= 2 {
		values, labels = ticksOf(0, length, roundStep(0.9*length/float64(steps)), steps+1)
		if len(labels)*(room(labels)+canvas.TickGap) <= pixels {
			break
		}
	}
	return values, labels
}

func (pic sheet) bar(r image.Rectangle, col *colours, face canvas.Typeface, values []float64, labels []string) {
	last := r.Dy() - 1
	for i := range r.Dy() {
		shade := col.table[(last-i)*(shades-1)/last]
		pic.Fill(image.Rect(r.Min.X, r.Min.Y+i, r.Max.X, r.Min.Y+i+1), shade)
	}
	pic.Frame(r)
	for i, v := range values {
		y := r.Max.Y - 1 - int(math.Round(col.at(v)*float64(last)))
		pic.Fill(image.Rect(r.Max.X, y, r.Max.X+canvas.TickSize, y+1), ink)
		pic.Text(face, labels[i], r.Max.X+canvas.TickSize+canvas.TickGap, y+face.CapHeight()/2, canvas.RightOf, ink)
	}
}

var (
	ink   = canvas.Ink
	faint = color.RGBA{0x5f, 0x5f, 0x5f, 0xff}
	alarm = color.RGBA{0xc6, 0x28, 0x28, 0xff}
)

// typefaces are the fonts of a picture.
type typefaces struct{ title, caption, tick canvas.Typeface }

func newTypefaces() (t typefaces, err error) {
	for _, f := range []struct {
		face *canvas.Typeface
		ttf  []byte
		size float64 // in pixels
	}{{&t.title, gobold.TTF, 30}, {&t.caption, goregular.TTF, 20}, {&t.tick, goregular.TTF, 18}} {
		if *f.face, err = canvas.NewTypeface(f.ttf, f.size); err != nil {
			return t, err
		}
	}
	return t, nil
}

// sheet is a picture of a field being drawn.
type sheet struct{ canvas.Canvas }

// writePNG writes an opaque picture as a PNG with 8 bits for each of red, green and blue (W3C, "Portable Network
// Graphics"). Of each row it compresses the difference from the row above, which is 0 in most rows of a picture.
// Package png tries all filters on each row: at its fastest it takes 38 ms for a picture of 1273 x 1217 pixels, and
// writePNG 15.
func writePNG(w io.Writer, img *image.RGBA) error {
	size := img.Bounds().Size()
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return err
	}
	const up = 2 // the filter
	row, above := append(make([]byte, 0, 1+3*size.X), up), make([]byte, 4*size.X)
	for y := range size.Y {
		pix := img.Pix[y*img.Stride:][:4*size.X]
		row = row[:1+3*size.X]
		if bytes.Equal(pix, above) {
			clear(row[1:])
		} else {
			for x, to := 0, row[1:]; x < len(pix); x, to = x+4, to[3:] {
				p, a := pix[x:x+3:x+3], above[x:x+3:x+3]
				to[0], to[1], to[2] = p[0]-a[0], p[1]-a[1], p[2]-a[2]
			}
		}
		if _, err := z.Write(row); err != nil {
			return err
		}
		above = pix
	}
	if err := z.Close(); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := binary.BigEndian.AppendUint32(nil, uint32(size.X))
	head = binary.BigEndian.AppendUint32(head, uint32(size.Y))
	writeChunk(&b, "IHDR", append(head, 8, 2, 0, 0, 0)) // 8 bits, colours without opacity
	writeChunk(&b, "IDAT", packed.Bytes())
	writeChunk(&b, "IEND", nil)
	_, err = w.Write(b.Bytes())
	return err
}

func writeChunk(b *bytes.Buffer, kind string, data []byte) {
	body := append([]byte(kind), data...)
	b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	b.Write(body)
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
}
