package probe

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"

	"golang.org/x/image/font/gofont/goregular"
	"gonum.org/v1/plot/palette/moreland"

	"jacobi/internal/base/canvas"
	"jacobi/internal/observe/output"
)

// Sizes of a picture in pixels.
const (
	textSize   = 18
	margin     = 24
	cellSize   = 96
	plotWidth  = 720
	plotHeight = 420
)

// heatMap draws a matrix, whose first column has the names of its rows, in colours and with its values divided by unit.
// The first row is on top. Cells without a value stay empty.
func (t Table) heatMap(title string, unit float64) ([]byte, error) {
	face, err := canvas.NewTypeface(goregular.TTF, textSize)
	if err != nil {
		return nil, err
	}
	var labels []string
	var cells [][]float64
	most := 0.0
	for _, row := range t.Rows {
		labels, cells = append(labels, fmt.Sprint(row[0])), append(cells, nil)
		for _, cell := range row[1:] {
			v, _ := cell.(float64)
			cells[len(cells)-1] = append(cells[len(cells)-1], v/unit)
			most = max(most, v/unit)
		}
	}
	// A link that is a little slower looks a little darker. The end of the palette is white.
	shades := moreland.ExtendedBlackBody().Palette(256).Colors()
	side, left := cellSize*len(labels), margin+face.Widest(labels)+canvas.TickGap
	top := margin + 2*face.LineHeight()
	c := canvas.New(max(left+side, margin+face.Width(title))+margin, top+side+2*face.LineHeight())
	c.Text(face, title, margin, margin+face.CapHeight(), canvas.RightOf, canvas.Ink)
	c.Frame(image.Rect(left, top, left+side, top+side))
	for r, row := range cells {
		middle := cellSize/2 + face.CapHeight()/2
		c.Text(face, labels[r], left-canvas.TickGap, top+r*cellSize+middle, canvas.LeftOf, canvas.Ink)
		c.Text(face, labels[r], left+r*cellSize+cellSize/2, top+side+face.LineHeight(), canvas.Centred, canvas.Ink)
		for i, v := range row {
			cell := image.Rect(0, 0, cellSize, cellSize).Add(image.Pt(left+i*cellSize, top+r*cellSize))
			if v == 0 {
				c.Fill(cell, color.Gray{0xdd})
				continue
			}
			shade := int(v / (1.25 * most) * float64(len(shades)-1))
			c.Fill(cell, shades[shade])
			ink := color.Color(color.Black)
			if shade < len(shades)/2 {
				ink = color.White
			}
			c.Text(face, digits(v), cell.Min.X+cellSize/2, cell.Min.Y+middle, canvas.Centred, ink)
		}
	}
	return encode(c)
}

// point is a point of a curve.
type point struct{ x, y float64 }

// curve is one line of a chart.
type curve struct {
	name string
	at   []point
	dash bool
}

// curveColours are those of the curves of a chart, in turn.
var curveColours = []color.RGBA{{0x1f, 0x77, 0xb4, 0xff}, {0xd6, 0x27, 0x28, 0xff}, {0x2c, 0xa0, 0x2c, 0xff},
	{0x94, 0x67, 0xbd, 0xff}, {0x55, 0x55, 0x55, 0xff}, {0xff, 0x7f, 0x0e, 0xff}}

// chart draws the columns, in units, over the logarithm of the first one. The last two, which are bounds, are dashed.
func (t Table) chart(x, y string, unit float64) ([]byte, error) {
	face, err := canvas.NewTypeface(goregular.TTF, textSize)
	if err != nil {
		return nil, err
	}
	var ticks []float64
	curves := make([]curve, len(t.Columns)-1)
	most := 0.0
	for _, row := range t.Rows {
		at, _ := row[0].(float64)
		ticks = append(ticks, at)
		for i := range curves {
			curves[i].name, curves[i].dash = t.Columns[1+i].Name, i >= len(curves)-2
			if v, ok := row[1+i].(float64); ok {
				curves[i].at = append(curves[i].at, point{at, v * unit})
				most = max(most, v*unit)
			}
		}
	}
	curves = slices.DeleteFunc(curves, func(c curve) bool { return len(c.at) == 0 })
	values, labels := output.Ticks(0, most, 6)
	line := face.LineHeight()
	left, top := margin+face.Widest(labels)+canvas.TickGap, margin+(3+len(curves))*line
	plot := image.Rect(left, top, left+plotWidth, top+plotHeight)
	c := canvas.New(plot.Max.X+margin, plot.Max.Y+3*line)
	c.Text(face, t.Title, left, margin+face.CapHeight(), canvas.RightOf, canvas.Ink)
	c.Text(face, y, left, top-canvas.TickGap, canvas.RightOf, canvas.Ink)
	c.Text(face, x, (plot.Min.X+plot.Max.X)/2, plot.Max.Y+2*line+canvas.TickGap, canvas.Centred, canvas.Ink)
	place := func(p point) (float64, float64) {
		along := math.Log(p.x/ticks[0]) / math.Log(ticks[len(ticks)-1]/ticks[0])
		return float64(left) + along*plotWidth, float64(plot.Max.Y) - p.y/(1.05*most)*plotHeight
	}
	for _, v := range ticks {
		px, _ := place(point{v, 0})
		c.Line(px, float64(plot.Max.Y), px, float64(plot.Max.Y+canvas.TickSize), 1, canvas.Ink)
		c.Text(face, fmt.Sprint(v), int(px), plot.Max.Y+line, canvas.Centred, canvas.Ink)
	}
	for i, v := range values {
		_, py := place(point{ticks[0], v})
		c.Line(float64(left), py, float64(plot.Max.X), py, 1, color.Gray{0xdd})
		c.Text(face, labels[i], left-canvas.TickGap, int(py)+face.CapHeight()/2, canvas.LeftOf, canvas.Ink)
	}
	c.Frame(plot)
	for i, cv := range curves {
		col := curveColours[i%len(curveColours)]
		py := margin + (i+2)*line
		cv.draw(c, col, func(p point) (float64, float64) { return float64(left) + p.x, float64(py) + p.y },
			[]point{{0, 0}, {60, 0}})
		c.Text(face, cv.name, left+72, py+face.CapHeight()/2, canvas.RightOf, canvas.Ink)
		cv.draw(c, col, place, cv.at)
	}
	return encode(c)
}

// draw draws the curve through points at their places on c.
func (cv curve) draw(c canvas.Canvas, col color.Color, place func(point) (x, y float64), points []point) {
	const dash = 10
	for i := range points {
		x1, y1 := place(points[i])
		if !cv.dash {
			c.Fill(image.Rect(int(x1)-3, int(y1)-3, int(x1)+4, int(y1)+4), col)
		}
		if i == 0 {
			continue
		}
		x0, y0 := place(points[i-1])
		length := math.Hypot(x1-x0, y1-y0)
		if !cv.dash {
			c.Line(x0, y0, x1, y1, 2, col)
			continue
		}
		for at := 0.0; at < length; at += 2 * dash {
			from, to := at/length, min(1, (at+dash)/length)
			c.Line(x0+from*(x1-x0), y0+from*(y1-y0), x0+to*(x1-x0), y0+to*(y1-y0), 2, col)
		}
	}
}

func encode(c canvas.Canvas) ([]byte, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, c.RGBA); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return b.Bytes(), nil
}
