package probe

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// heatMap is a matrix drawn in colours, with its values. The first row is on top. Zeros stay empty.
type heatMap struct {
	title  string
	labels []string
	cells  [][]float64
}

// Dims, Z, X and Y implement plotter.GridXYZ.

func (h heatMap) Dims() (columns, rows int) { return len(h.labels), len(h.labels) }
func (h heatMap) X(c int) float64           { return float64(c) }
func (h heatMap) Y(r int) float64           { return float64(r) }
func (h heatMap) Z(c, r int) float64 {
	v := h.cells[len(h.cells)-1-r][c]
	if v == 0 {
		return math.NaN()
	}
	return v
}

// png draws the map.
func (h heatMap) png() ([]byte, error) {
	p := newPlot(h.title)
	colours := moreland.ExtendedBlackBody().Palette(256)
	grid := plotter.NewHeatMap(h, colours)
	grid.NaN = color.Gray{0xdd}
	// A link that is a little slower looks a little darker. The end of the palette is white.
	grid.Min, grid.Max = 0, 1.25*grid.Max
	p.Add(grid)
	marks := plotter.XYLabels{}
	n := len(h.labels)
	var columns, rows []plot.Tick
	for r := range n {
		columns = append(columns, plot.Tick{Value: float64(r), Label: h.labels[r]})
		rows = append(rows, plot.Tick{Value: float64(r), Label: h.labels[n-1-r]})
		for c := range n {
			if v := h.Z(c, r); !math.IsNaN(v) {
				marks.XYs = append(marks.XYs, plotter.XY{X: float64(c), Y: float64(r)})
				marks.Labels = append(marks.Labels, digits(v))
			}
		}
	}
	values, err := plotter.NewLabels(marks)
	if err != nil {
		return nil, err
	}
	for i := range values.TextStyle {
		style := &values.TextStyle[i]
		style.Color = color.Black
		at := marks.XYs[i]
		if v := h.Z(int(at.X), int(at.Y)); v < (grid.Min+grid.Max)/2 { // the dark half of the palette
			style.Color = color.White
		}
		style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
		style.Font.Variant, style.Font.Size = "Sans", 11
	}
	p.Add(values)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(columns), plot.ConstantTicks(rows)
	side := vg.Length(180 + 60*n)
	return encode(p, side+40, side)
}

// curve is one line of a chart.
type curve struct {
	name string
	at   plotter.XYs
	dash bool
}

// chart draws curves over a logarithmic scale to base 2.
func chart(title, x, y string, ticks []float64, curves []curve) ([]byte, error) {
	p := newPlot(title)
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Scale, p.Y.Min = plot.LogScale{}, 0
	var marks []plot.Tick
	for _, v := range ticks {
		marks = append(marks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(marks)
	shades := []color.Color{color.RGBA{0x1f, 0x77, 0xb4, 0xff}, color.RGBA{0xd6, 0x27, 0x28, 0xff},
		color.RGBA{0x2c, 0xa0, 0x2c, 0xff}, color.RGBA{0x94, 0x67, 0xbd, 0xff}, color.RGBA{0x55, 0x55, 0x55, 0xff},
		color.RGBA{0xff, 0x7f, 0x0e, 0xff}}
	for i, c := range curves {
		line, points, err := plotter.NewLinePoints(c.at)
		if err != nil {
			return nil, err
		}
		line.Color, points.Color, line.Width = shades[i%len(shades)], shades[i%len(shades)], 2
		if c.dash {
			line.Dashes = []vg.Length{6, 4}
			p.Add(line)
			p.Legend.Add(c.name, line)
			continue
		}
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
	}
	p.Legend.Top = true
	p.Y.Max *= 1.4 // room for the legend
	return encode(p, 640, 420)
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = 8
	for _, f := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label,
		&p.Y.Tick.Label, &p.Legend.TextStyle} {
		f.Font.Variant = "Sans"
	}
	return p
}

// encode draws a plot of the given size in points on a white ground.
func encode(p *plot.Plot, width, height vg.Length) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(96), vgimg.UseBackgroundColor(color.White))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return b.Bytes(), nil
}
