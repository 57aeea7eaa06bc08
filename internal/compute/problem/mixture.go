package problem

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"math"
)

// A program that draws smooth edges blends the two colours of an edge in the values of the picture (sRGB), by the parts
// of a pixel that they cover. So a pixel with a colour between two listed ones is divided between them.

const (
	tolerance     = 2       // of 255, in each channel, for the rounding of blended colours
	reach         = 2       // pixels to each side in which one of the two colours is looked for
	divisionBytes = 100     // that a pixel with a division takes, about
	mostDivided   = 1 << 21 // of these pixels
	mostPairs     = 1 << 16 // colours whose pairs are remembered
)

// divided is the number of a pixel that is divided between two colours.
const divided = 0xff

// mixture finds the listed colours of the pixels of a picture.
type mixture struct {
	image        image.Image
	across, down axis
	listed       [][3]uint8
	colour       func(x, y int) (c [3]uint8, opaque bool)
	other        func(c [3]uint8, x, y int) (uint8, error) // for a pixel that is neither listed nor at an edge
	both         bool                                      // an edge has both of its colours within reach

	width, height int
	pixels        []uint8
	divisions     map[int]division // by the numbers of pixels
	pairs         map[[3]uint8][]blend
	kept          [reach + 1][]uint8 // the last rows, and the first ones, as readListed left them
	first         [reach][]uint8
}

// blend is two listed colours, by their numbers, between which a colour lies, and the share of the first one in it.
// They are the same for a colour that only rounding tells from a listed one.
type blend struct {
	a, b       uint8
	share, off float64 // off is the distance, in the channel where it is largest
}

// read finds the colours of all pixels, unless ctx ends before.
func (m *mixture) read(ctx context.Context) error {
	m.width, m.height = m.image.Bounds().Dx(), m.image.Bounds().Dy()
	m.pixels, m.divisions, m.pairs = make([]uint8, m.width*m.height), map[int]division{}, map[[3]uint8][]blend{}
	if err := m.readListed(ctx); err != nil {
		return err
	}
	for y := range m.height {
		if err := ended(ctx); err != nil {
			return err
		}
		row := m.pixels[y*m.width:][:m.width]
		m.kept[y%len(m.kept)] = append(m.kept[y%len(m.kept)][:0], row...)
		if y < reach {
			m.first[y] = append([]uint8(nil), row...)
		}
		for x, k := range row {
			if k != divided {
				continue
			}
			c, _ := m.colour(x, y)
			p, ok := m.choose(c, x, y)
			switch {
			case !ok:
				var err error
				if row[x], err = m.other(c, x, y); err != nil {
					return err
				}
			case p.share == 1:
				row[x] = p.a
			case p.share == 0:
				row[x] = p.b
			case len(m.divisions) == mostDivided:
				return fmt.Errorf("more than %d pixels have colours between two listed ones; draw sharp edges, or "+
					"fewer pixels", mostDivided)
			default:
				m.divisions[y*m.width+x] = m.divide(p, x, y)
			}
		}
	}
	return nil
}

// readListed finds the colours of pixels that are listed. It marks others as divided.
func (m *mixture) readListed(ctx context.Context) error {
	values, size := values8(m.image)
	places := map[[3]uint8]uint8{}
	for i, c := range m.listed {
		places[c] = uint8(i)
	}
	var place uint8
	var value, last uint32 // of the pixel before, which mostly is of the same colour
	known := false
	for y := range m.height {
		if err := ended(ctx); err != nil {
			return err
		}
		line := values[y*m.width*size:]
		for x := range m.width {
			if value = uint32(line[x*size]); size == 4 {
				value = binary.LittleEndian.Uint32(line[4*x:])
			}
			if !known || value != last {
				c, ok := m.colour(x, y)
				if !ok {
					return fmt.Errorf("the pixel at column %d, row %d is transparent; all must be opaque", x, y)
				}
				if place, ok = places[c]; !ok {
					place = divided
				}
				last, known = value, true
			}
			m.pixels[y*m.width+x] = place
		}
	}
	return nil
}

// inside returns the pixel at a place, which goes on beyond periodic sides, and whether there is one.
func (m *mixture) inside(x, y int) (column, row int, ok bool) {
	if m.across.periodic {
		x = (x%m.width + m.width) % m.width
	}
	if m.down.periodic {
		y = (y%m.height + m.height) % m.height
	}
	return x, y, x >= 0 && x < m.width && y >= 0 && y < m.height
}

// count counts the pixels of listed colours up to some pixels around one in row y.
func (m *mixture) count(x, y, pixels int) (n [divided + 1]int) {
	for j := y - pixels; j <= y+pixels; j++ {
		for i := x - pixels; i <= x+pixels; i++ {
			column, row, ok := m.inside(i, j)
			if !ok {
				continue
			}
			line := m.pixels[row*m.width:]
			switch {
			case row <= y && row < reach:
				line = m.first[row]
			case row <= y && row > y-len(m.kept):
				line = m.kept[row%len(m.kept)]
			}
			n[line[column]]++
		}
	}
	n[divided] = 0
	return n
}

// choose returns the colours between which a pixel is divided, of those between which its colour lies: two that both
// touch it, then one that only rounding tells from it, then two within reach, then one. Of several pairs it takes the
// one with more pixels around, then the one that is less off, then the first.
func (m *mixture) choose(c [3]uint8, x, y int) (best blend, ok bool) {
	near, far := m.count(x, y, 1), m.count(x, y, reach)
	most := -1
	for _, p := range m.between(c) {
		rank := far[p.a] + far[p.b]
		switch {
		case rank == 0 || m.both && far[p.a]*far[p.b] == 0:
			continue
		case p.a != p.b && near[p.a] > 0 && near[p.b] > 0:
			rank += 1 << 16
		case p.a == p.b:
			rank += 1 << 10
		case far[p.a] > 0 && far[p.b] > 0:
			rank += 1 << 5
		}
		if rank > most || rank == most && p.off < best.off {
			most, best = rank, p
		}
	}
	if most < 0 {
		return m.among(c, far)
	}
	return best, true
}

// between returns the pairs of listed colours between which a colour lies.
func (m *mixture) between(c [3]uint8) []blend {
	if list, ok := m.pairs[c]; ok {
		return list
	}
	var list []blend
	for i, a := range m.listed {
		if off := offLine(c, a, a, 1); off <= tolerance {
			list = append(list, blend{uint8(i), uint8(i), 1, off})
		}
		for j, b := range m.listed[:i] {
			if share, off := shareOf(c, b, a); off <= tolerance {
				list = append(list, blend{uint8(j), uint8(i), share, off})
			}
		}
	}
	if len(m.pairs) == mostPairs {
		clear(m.pairs)
	}
	m.pairs[c] = list
	return list
}

// shareOf returns the share of a in the mixture of two colours that is nearest to c, and how far off that is.
func shareOf(c, a, b [3]uint8) (share, off float64) {
	share = min(max(float64(dot(c, a, b))/float64(dot(a, a, b)), 0), 1)
	return share, offLine(c, a, b, share)
}

// dot returns the product of the steps from b to c and from b to a.
func dot(c, a, b [3]uint8) (sum int) {
	for k := range c {
		sum += (int(c[k]) - int(b[k])) * (int(a[k]) - int(b[k]))
	}
	return sum
}

// offLine returns how far c is off the mixture of a and b, in the channel where that is most.
func offLine(c, a, b [3]uint8, share float64) (most float64) {
	for k := range c {
		v := float64(b[k]) + float64(share*(float64(a[k])-float64(b[k])))
		most = max(most, math.Abs(float64(c[k])-v))
	}
	return most
}

// among returns the two colours with the largest shares in a colour that three of those around mix, where these meet.
func (m *mixture) among(c [3]uint8, around [divided + 1]int) (best blend, ok bool) {
	var list []uint8
	for k := range m.listed {
		if around[k] > 0 {
			list = append(list, uint8(k))
		}
	}
	for i, a := range list {
		for j, b := range list[:i] {
			for _, d := range list[:j] {
				if p, ok := m.mixed(c, [3]uint8{d, b, a}); ok {
					return p, true
				}
			}
		}
	}
	return blend{}, false
}

// mixed returns the two colours of three that have the largest shares in a colour, if this is a mixture of them.
func (m *mixture) mixed(c [3]uint8, of [3]uint8) (p blend, ok bool) {
	o, a, b := m.listed[of[0]], m.listed[of[1]], m.listed[of[2]]
	aa, ab, bb := dot(a, a, o), dot(a, b, o), dot(b, b, o)
	ca, cb, det := dot(c, a, o), dot(c, b, o), aa*bb-ab*ab
	if det == 0 {
		return p, false
	}
	second := float64(ca*bb-cb*ab) / float64(det)
	third := float64(cb*aa-ca*ab) / float64(det)
	parts := [3]float64{1 - second - third, second, third}
	for k := range c {
		v := float64(parts[0]*float64(o[k])) + float64(second*float64(a[k])) + float64(third*float64(b[k]))
		if math.Abs(v-float64(c[k])) > tolerance {
			return p, false
		}
	}
	least := 0
	for i, part := range parts {
		if part < parts[least] {
			least = i
		}
	}
	if parts[least] < 0 {
		return p, false
	}
	i, j := (least+1)%3, (least+2)%3
	return blend{of[i], of[j], parts[i] / (parts[i] + parts[j]), 0}, true
}

// divide divides a pixel between two colours.
func (m *mixture) divide(p blend, x, y int) division {
	var s coverage
	left, top := m.across.window(x, m.width), m.down.window(y, m.height)
	for j := range s {
		for i := range s[j] {
			column, row, _ := m.inside(left+i, top+j)
			c, _ := m.colour(min(column, m.width-1), min(row, m.height-1))
			share, off := shareOf(c, m.listed[p.a], m.listed[p.b])
			if off > tolerance { // another colour is mixed in
				share = p.share
			}
			s[j][i] = share
		}
	}
	s[y-top][x-left] = p.share
	e := s.divide(x-left, y-top)
	e.before, e.beyond = p.a, p.b
	return e
}

// window returns the first of three pixels around one, of n, that do not reach beyond a side.
func (a axis) window(pixel, n int) int {
	if a.periodic {
		return pixel - 1
	}
	return max(min(pixel-1, n-3), 0)
}

// bytes is the memory that the colours take.
func (m *mixture) bytes() int64 { return int64(len(m.pixels)) + divisionBytes*int64(len(m.divisions)) }

// block returns the hash of the colours of all pixels.
func (m *mixture) block() *blocks {
	title := []byte(fmt.Sprint(m.width))
	for n, k := range m.pixels {
		if k == divided {
			e := m.divisions[n]
			title = fmt.Appendf(title, " %d %d %x %x %x", e.before, e.beyond, e.nx, e.ny, e.d)
		}
	}
	return oneBlock(string(title), m.pixels)
}
