package output

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"

	"jacobi/internal/base/parallel"
)

// MaxFrames bounds the frames of an animation, and so its size.
const MaxFrames = 100

// Pace decides which samples are kept: all of them, as long as they are few, then every second, every fourth and so on.
// It is the same on all ranks.
type Pace struct {
	samples int // seen so far
	step    int // samples from one that is kept to the next; 0 counts as 1
	kept    int // of the samples seen so far
}

// Next reports whether the next sample is one of those, at most of which are kept; that number is even. thin reports
// that Thin is to be called with the earlier ones before.
func (p *Pace) Next(most int) (keep, thin bool) {
	p.step = max(1, p.step)
	if keep = p.samples%p.step == 0; keep {
		if p.kept == most {
			thin, p.step, p.kept = true, 2*p.step, most/2
		}
		p.kept++
	}
	p.samples++
	return keep, thin
}

// Thin leaves out every second one of s, the second one first.
func Thin[T any](s []T) []T {
	for i := range (len(s) + 1) / 2 {
		s[i] = s[2*i]
	}
	return s[:(len(s)+1)/2]
}

// Animation is the field at several times, on one colour scale for all of them. One rank holds it.
type Animation struct {
	frames []frame
	like   Thumbnail // has the mesh and the scale of all frames
	shift  int       // of the exponents of cells, such that the largest value of the first frame is about 1
}

// frame is the field at one time.
type frame struct {
	sweeps   int
	norm     float64
	cells    [][]float32 // averages, times 2^shift
	min, max float64
}

// Add appends the field of t, a thumbnail for an animation that has all rows of the mesh. With thin it first leaves out
// every second frame.
func (a *Animation) Add(sweeps int, norm float64, t *Thumbnail, thin bool) error {
	cells, err := t.cells()
	if err != nil {
		return fmt.Errorf("animation: %w", err)
	}
	if len(a.frames) == 0 {
		a.like = Thumbnail{mesh: t.mesh, hx: t.hx, hy: t.hy, scale: t.scale, min: math.Inf(1), max: math.Inf(-1)}
		if largest := math.Max(math.Abs(t.min), math.Abs(t.max)); largest > 0 && !math.IsInf(largest, 0) {
			_, exponent := math.Frexp(largest)
			a.shift = -exponent
		}
	}
	if thin {
		a.frames = Thin(a.frames)
	}
	f := frame{sweeps: sweeps, norm: norm, min: t.min, max: t.max}
	for _, line := range cells {
		narrow := make([]float32, len(line))
		for i, v := range line {
			narrow[i] = float32(math.Ldexp(v, a.shift))
		}
		f.cells = append(f.cells, narrow)
	}
	a.frames = append(a.frames, f)
	return nil
}

// wide returns the averages of a frame.
func (a *Animation) wide(f frame) [][]float64 {
	cells := make([][]float64, len(f.cells))
	for y, line := range f.cells {
		cells[y] = make([]float64, len(line))
		for x, v := range line {
			cells[y][x] = math.Ldexp(float64(v), -a.shift)
		}
	}
	return cells
}

// all returns a thumbnail with the range of all frames, and their colours. The scale is chosen from all frames.
func (a *Animation) all(kind string) (*Thumbnail, *colours, error) {
	t := new(a.like)
	var cells [][]float64
	step := 1 + len(a.frames)/8 // about eight of the frames decide
	for i, f := range a.frames {
		t.min, t.max = min(t.min, f.min), max(t.max, f.max)
		if i%step == 0 || i == len(a.frames)-1 {
			cells = append(cells, a.wide(f)...)
		}
	}
	col, err := newColours(newColourScale(kind, cells, t.min, t.max, rounding(t.mesh.DType)))
	return t, col, err
}

// draw returns the frames as pictures of one size. Their captions are c with the sweeps and the norm of each frame.
func (a *Animation) draw(c Caption) (pictures []*image.Paletted, err error) {
	if len(a.frames) == 0 {
		return nil, fmt.Errorf("an animation without frames")
	}
	t, col, err := a.all(c.Scale)
	if err != nil {
		return nil, err
	}
	faces, err := newTypefaces()
	if err != nil {
		return nil, err
	}
	captions := make([]Caption, len(a.frames))
	longest := c
	lines := 0
	for i, f := range a.frames {
		captions[i] = c
		captions[i].Sweeps, captions[i].Norm = f.sweeps, f.norm
		if i < len(a.frames)-1 {
			captions[i].Stalled, captions[i].Interrupted = false, false
		}
		if n := len(t.plan(captions[i], col, faces).lines); n > lines {
			lines, longest = n, captions[i]
		}
	}
	whole := t.plan(longest, col, faces)
	pictures = make([]*image.Paletted, len(a.frames))
	err = parallel.Each(len(pictures), func(i int) error {
		faces, err := newTypefaces() // which do not draw two pictures at once
		if err != nil {
			return err
		}
		l := whole
		l.lines = t.plan(captions[i], col, faces).lines
		pictures[i] = newPalette(col).reduce(t.paint(l, a.wide(a.frames[i]), col, faces, captions[i]))
		return nil
	})
	return pictures, err
}

// Encode returns the animation in the format that the ending of name chooses: GIF, or animated PNG.
func (a *Animation) Encode(name string, c Caption) ([]byte, error) {
	pictures, err := a.draw(c)
	if err != nil {
		return nil, fmt.Errorf("animation: %w", err)
	}
	var b bytes.Buffer
	write := writeAPNG
	if strings.EqualFold(filepath.Ext(name), ".gif") {
		write = writeGIF
	}
	if err := write(&b, changes(pictures)); err != nil {
		return nil, fmt.Errorf("animation: %w", err)
	}
	return b.Bytes(), nil
}

// changes returns the first picture and, of each later one, the part that differs from the picture before it.
func changes(pictures []*image.Paletted) []*image.Paletted {
	parts := pictures[:1:1]
	for i, p := range pictures[1:] {
		before, r := pictures[i], p.Bounds()
		changed := image.Rectangle{}
		for y := r.Min.Y; y < r.Max.Y; y++ {
			at := p.PixOffset(r.Min.X, y)
			a, b := p.Pix[at:at+r.Dx()], before.Pix[at:at+r.Dx()]
			if bytes.Equal(a, b) {
				continue
			}
			from, to := 0, len(a)
			for a[from] == b[from] {
				from++
			}
			for a[to-1] == b[to-1] {
				to--
			}
			changed = changed.Union(image.Rect(r.Min.X+from, y, r.Min.X+to, y+1))
		}
		if changed.Empty() {
			changed = image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Min.Y+1)
		}
		parts = append(parts, p.SubImage(changed).(*image.Paletted))
	}
	return parts
}

// A frame is shown for a tenth of a second, the last one longer.
const (
	frameHundredths = 10
	lastHundredths  = 200
)

// hundredths returns for how many hundredths of a second frame i of n is shown.
func hundredths(i, n int) int {
	if i == n-1 {
		return lastHundredths
	}
	return frameHundredths
}

// palette is the 256 colours of an animation: those of the field, and those of text on white.
type palette struct {
	colours color.Palette
	known   map[color.RGBA]uint8
}

// newPalette returns the palette of a picture in these colours.
func newPalette(col *colours) palette {
	p := palette{known: map[color.RGBA]uint8{}}
	add := func(c color.RGBA) { p.colours = append(p.colours, c) }
	add(color.RGBA{255, 255, 255, 255})
	add(infinite)
	add(outside)
	for _, text := range []color.RGBA{ink, faint, alarm} {
		const steps = 8
		for i := 1; i <= steps; i++ {
			mix := func(v uint8) uint8 { return uint8(255 + (int(v)-255)*i/steps) }
			add(color.RGBA{mix(text.R), mix(text.G), mix(text.B), 255})
		}
	}
	for i, first := 0, len(p.colours); len(p.colours) < 256; i++ {
		add(col.table[i*(shades-1)/(255-first)])
	}
	return p
}

// reduce returns pic in the colours of the palette.
func (p palette) reduce(pic *image.RGBA) *image.Paletted {
	out := image.NewPaletted(pic.Bounds(), p.colours)
	for i := range out.Pix {
		c := color.RGBA{pic.Pix[4*i], pic.Pix[4*i+1], pic.Pix[4*i+2], pic.Pix[4*i+3]}
		at, ok := p.known[c]
		if !ok {
			at = uint8(p.colours.Index(c))
			p.known[c] = at
		}
		out.Pix[i] = at
	}
	return out
}

// writeGIF writes pictures that are shown one after the other, each over those before.
func writeGIF(w io.Writer, pictures []*image.Paletted) error {
	size := pictures[0].Bounds().Size()
	g := gif.GIF{Image: pictures, Config: image.Config{ColorModel: pictures[0].Palette, Width: size.X, Height: size.Y}}
	for i := range pictures {
		g.Delay = append(g.Delay, hundredths(i, len(pictures)))
		g.Disposal = append(g.Disposal, gif.DisposalNone)
	}
	return gif.EncodeAll(w, &g)
}

// writeAPNG does so in the format of an animated PNG (W3C, "Portable Network Graphics, Third Edition"): the chunks of
// a PNG of the first picture, with the data of the others in chunks fdAT.
func writeAPNG(w io.Writer, pictures []*image.Paletted) error {
	var b bytes.Buffer
	serial := uint32(0)
	number := func() []byte {
		serial++
		return binary.BigEndian.AppendUint32(nil, serial-1)
	}
	for i, p := range pictures {
		var one bytes.Buffer
		if err := png.Encode(&one, p); err != nil {
			return err
		}
		signature := one.Next(8)
		if i == 0 {
			b.Write(signature)
		}
		described := false
		for one.Len() > 0 {
			kind, data, err := nextChunk(&one)
			if err != nil {
				return err
			}
			switch {
			case kind == "IDAT":
				if !described {
					writeChunk(&b, "fcTL", append(number(), frameControl(p.Bounds(), hundredths(i, len(pictures)))...))
					described = true
				}
				if i > 0 {
					kind, data = "fdAT", append(number(), data...)
				}
				writeChunk(&b, kind, data)
			case kind == "IHDR" && i == 0:
				writeChunk(&b, kind, data)
				writeChunk(&b, "acTL", binary.BigEndian.AppendUint64(nil, uint64(len(pictures))<<32)) // plays: for ever
			case kind == "PLTE" && i == 0, kind == "IEND" && i == len(pictures)-1:
				writeChunk(&b, kind, data)
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// frameControl returns what follows the number of a chunk fcTL: size and place, the delay, and that the frame leaves
// what it does not cover.
func frameControl(r image.Rectangle, hundredths int) (b []byte) {
	for _, v := range []int{r.Dx(), r.Dy(), r.Min.X, r.Min.Y} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(hundredths))
	b = binary.BigEndian.AppendUint16(b, 100)
	return append(b, 0, 0)
}

// nextChunk reads a chunk of a PNG.
func nextChunk(b *bytes.Buffer) (kind string, data []byte, err error) {
	head := b.Next(8)
	if len(head) < 8 || b.Len() < int(binary.BigEndian.Uint32(head))+4 {
		return "", nil, errors.New("a PNG without its end")
	}
	data = b.Next(int(binary.BigEndian.Uint32(head)))
	b.Next(4) // the checksum, which is made anew
	return string(head[4:]), data, nil
}
