package aggregation

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// faces are faces by unknown of a row of tiles.
type faces struct {
	begin []int32 // by unknown: its first face; and the number of faces
	to    []int32 // in ascending order
	face  []float32
}

func newFaces(unknowns int) faces { return faces{begin: make([]int32, 1, unknowns+1)} }

// strip is the equations of the unknowns of a row of tiles of a level from 1 on, numbered from 0.
type strip struct {
	tiles  []int32 // by tile: the first of its unknowns; and their number
	excess []float32
	own    faces // to unknowns of the same row of tiles with higher numbers
	down   faces // to unknowns of the next row of tiles
}

func (s *strip) unknowns() int { return len(s.excess) }

// gatherer adds the faces of one unknown after the other.
type gatherer struct {
	to   []target
	seen []int32 // by unknown: where it may stand in to
}

type target struct {
	unknown int32
	face    float64
}

// add adds a face to those of the present unknown.
func (g *gatherer) add(to int32, f float64) {
	if len(g.seen) <= int(to) {
		g.seen = filled(g.seen, 2*int(to)+1)
	}
	if at := g.seen[to]; at >= 0 && int(at) < len(g.to) && g.to[at].unknown == to {
		g.to[at].face += f
		return
	}
	g.seen[to] = int32(len(g.to))
	g.to = append(g.to, target{to, f})
}

// close puts the faces of the present unknown behind others and begins with the next unknown. Those that are 0 in
// float32 are left out.
func (g *gatherer) close(all *faces) {
	slices.SortFunc(g.to, func(a, b target) int { return cmp.Compare(a.unknown, b.unknown) })
	for _, t := range g.to {
		if f := float32(t.face); f > 0 {
			all.to, all.face = append(all.to, t.unknown), append(all.face, f)
		}
	}
	all.begin = append(all.begin, int32(len(all.to)))
	g.to = g.to[:0]
}

// strip returns the equations of the sets of a patch, without faces that lead down.
func (g *gatherer) strip(p *patch, sets *grouping) strip {
	n := len(sets.first) - 1
	s := strip{tiles: sets.tiles, excess: make([]float32, n), own: newFaces(n)}
	for i := range n {
		excess := 0.0
		for _, m := range sets.members[sets.first[i]:sets.first[i+1]] {
			excess += p.excess[m]
			for f := p.begin[m]; f < p.begin[m+1]; f++ {
				if p.to[f] >= 0 && sets.set[p.to[f]] > int32(i) {
					g.add(sets.set[p.to[f]], p.face[f])
				}
			}
		}
		s.excess[i] = float32(excess)
		g.close(&s.own)
	}
	return s
}

// encode appends the strip to data: the numbers of unknowns, of own faces and of faces that lead down as 32-bit
// integers, the number of unknowns of each tile as bytes, the excesses, and then for both kinds of faces the number of
// each unknown as bytes, where they lead, and the faces. All is little-endian.
func (s *strip) encode(data []byte) []byte {
	for _, n := range []int{s.unknowns(), len(s.own.to), len(s.down.to)} {
		data = binary.LittleEndian.AppendUint32(data, uint32(n))
	}
	for t := range len(s.tiles) - 1 {
		data = append(data, byte(s.tiles[t+1]-s.tiles[t]))
	}
	data = appendFloats(data, s.excess)
	for _, f := range []*faces{&s.own, &s.down} {
		for i := range s.unknowns() {
			data = append(data, byte(f.begin[i+1]-f.begin[i]))
		}
		for _, to := range f.to {
			data = binary.LittleEndian.AppendUint32(data, uint32(to))
		}
		data = appendFloats(data, f.face)
	}
	return data
}

func appendFloats(data []byte, values []float32) []byte {
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

// header is the bytes of the numbers of a strip.
const header = 12

// stripBytes returns the bytes of the strip that data begins with, of the given number of tiles.
func stripBytes(data []byte, tiles int) (int, error) {
	if len(data) < header {
		return 0, fmt.Errorf("%d bytes, of which a row of tiles takes at least %d", len(data), header)
	}
	n := func(i int) int { return int(binary.LittleEndian.Uint32(data[4*i:])) }
	bytes := header + tiles + 6*n(0) + 8*(n(1)+n(2))
	if bytes > len(data) {
		return 0, fmt.Errorf("%d bytes, but %d unknowns with %d and %d faces", len(data), n(0), n(1), n(2))
	}
	return bytes, nil
}

// decode sets the strip to what encode has written, of the given number of tiles; stripBytes has accepted it. It fails
// if that is no strip. Where the faces that lead down go is left to checkDown.
func (s *strip) decode(data []byte, tiles int) error {
	n := func(i int) int { return int(binary.LittleEndian.Uint32(data[4*i:])) }
	unknowns, counts := n(0), [2]int{n(1), n(2)}
	data = data[header:]
	s.tiles = sums(data[:tiles])
	if s.tiles[tiles] != int32(unknowns) {
		return fmt.Errorf("%d unknowns, but %d in its tiles", unknowns, s.tiles[tiles])
	}
	data = data[tiles:]
	s.excess, data = takeFloats(data, unknowns)
	for i, e := range s.excess {
		if !(e >= 0) || math.IsInf(float64(e), 1) {
			return fmt.Errorf("excess %v of unknown %d: it must be finite and at least 0", e, i)
		}
	}
	for k, f := range []*faces{&s.own, &s.down} {
		f.begin, data = sums(data[:unknowns]), data[unknowns:]
		if f.begin[unknowns] != int32(counts[k]) {
			return fmt.Errorf("%d faces, but %d of its unknowns", counts[k], f.begin[unknowns])
		}
		f.to = make([]int32, counts[k])
		for i := range f.to {
			f.to[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
		}
		f.face, data = takeFloats(data[4*counts[k]:], counts[k])
	}
	for i := range unknowns {
		if err := s.own.check(i, i+1, unknowns); err != nil {
			return err
		}
	}
	return nil
}

// checkDown fails unless the faces that lead down go to the unknowns of a row of tiles that has so many.
func (s *strip) checkDown(unknowns int) error {
	for i := range s.unknowns() {
		if err := s.down.check(i, 0, unknowns); err != nil {
			return err
		}
	}
	return nil
}

// check fails unless the faces of unknown i lead to unknowns from lo to end-1, in ascending order.
func (f *faces) check(i, lo, end int) error {
	for k := f.begin[i]; k < f.begin[i+1]; k++ {
		to, v := f.to[k], f.face[k]
		if int(to) < lo || int(to) >= end {
			return fmt.Errorf("a face of unknown %d leads to %d: allowed are %d to %d", i, to, lo, end-1)
		}
		if !(v > 0) || math.IsInf(float64(v), 1) {
			return fmt.Errorf("face %v from unknown %d to %d: it must be finite and above 0", v, i, to)
		}
		lo = int(to) + 1
	}
	return nil
}

// sums returns the sums of the numbers before each one, and of all.
func sums(counts []byte) []int32 {
	s := make([]int32, len(counts)+1)
	for i, n := range counts {
		s[i+1] = s[i] + int32(n)
	}
	return s
}

func takeFloats(data []byte, n int) (values []float32, rest []byte) {
	values = make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values, data[4*n:]
}
