package results

import (
	"cmp"
	"slices"
)

// maxRuns is the largest number of runs of fixed points in a row, and of runs in the whole mesh without a fixed point
// above them. If there are more, regions are not told apart. There are no more regions than runs of the second kind,
// and neither number depends on the ranks.
const maxRuns = 1024

// region is a set of fixed points, or a part of one on a rank: each point has another one beside, above or below it. To
// it belong areas between points, which pass through its cells.
type region struct {
	extent
	Between extent `json:"between"`
	Flux    *Sum   `json:"flux"`
}

// extent is where points lie, and their values. Those of an area between points are the nearest ones.
type extent struct {
	IX     int     `json:"ix"` // the first point, by rows
	IY     int     `json:"iy"`
	First  float64 `json:"first"`  // its value
	Points int64   `json:"points"` // 0 for a part that lies on the next rank
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// add adds the point at column ix of row iy with value v.
func (e *extent) add(ix, iy int, v float64) { e.merge(extent{ix, iy, v, 1, v, v}) }

// merge adds the points of other.
func (e *extent) merge(other extent) {
	switch {
	case other.Points == 0:
		return
	case e.Points == 0:
		*e = other
		return
	case cmp.Or(cmp.Compare(other.IY, e.IY), cmp.Compare(other.IX, e.IX), cmp.Compare(other.First, e.First)) < 0:
		e.IX, e.IY, e.First = other.IX, other.IY, other.First
	}
	e.Min, e.Max = min(e.Min, other.Min), max(e.Max, other.Max)
	e.Points += other.Points
}

// merge adds the points and the flux of other.
func (r *region) merge(other *region) {
	r.extent.merge(other.extent)
	r.Between.merge(other.Between)
	r.Flux.Merge(other.Flux)
}

// labels are regions that grow together: a forest of labels, whose roots have the regions.
type labels struct {
	parent  []int
	regions []*region // nil for a label that is no root
}

// add returns the label of a new region.
func (l *labels) add() int {
	l.parent = append(l.parent, len(l.parent))
	l.regions = append(l.regions, &region{Flux: new(Sum)})
	return len(l.parent) - 1
}

// root returns the label that stands for the region of label.
func (l *labels) root(label int) int {
	for l.parent[label] != label {
		l.parent[label] = l.parent[l.parent[label]]
		label = l.parent[label]
	}
	return label
}

// join makes the regions of two labels one.
func (l *labels) join(a, b int) {
	a, b = l.root(a), l.root(b)
	if a == b {
		return
	}
	a, b = min(a, b), max(a, b)
	l.parent[b] = a
	l.regions[a].merge(l.regions[b])
	l.regions[b] = nil
}

// joinAll makes all regions one, whose label is 0.
func (l *labels) joinAll() {
	for label := range l.parent {
		l.join(0, label)
	}
}

// of returns the region of a label.
func (l *labels) of(label int) *region { return l.regions[l.root(label)] }

// numbered returns the regions, and a function that maps a label to the place of its region among them.
func (l *labels) numbered() ([]*region, func(label int) int) {
	var list []*region
	place := map[int]int{}
	for i, r := range l.regions {
		if r != nil {
			place[i] = len(list)
			list = append(list, r)
		}
	}
	return list, func(label int) int { return place[l.root(label)] }
}

// sortRegions sorts regions by their first points.
func sortRegions(list []Region) {
	slices.SortFunc(list, func(a, b Region) int {
		return cmp.Or(cmp.Compare(a.First.IY, b.First.IY), cmp.Compare(a.First.IX, b.First.IX),
			cmp.Compare(a.First.Value, b.First.Value), cmp.Compare(a.Points, b.Points))
	})
}
