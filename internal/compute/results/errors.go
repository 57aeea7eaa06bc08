package results

import (
	"math"
	"slices"

	"jacobi/internal/compute/richardson"
)

// Errors are what the mesh leaves of errors in Results: about how far each figure is from that of infinitely fine
// meshes. What is not known is nil.
type Errors struct {
	Energy  *float64            `json:"energy"`
	Min     *float64            `json:"min"`
	Max     *float64            `json:"max"`
	Mean    *float64            `json:"mean"`
	Flux    map[string]*float64 `json:"flux"`
	Regions []*float64          `json:"regions"` // of their fluxes
	Values  []*float64          `json:"values"`  // of those of floating regions
}

// Compare returns the errors of results, but for extremes, by those on half and quarter of the mesh, with ratio times
// the spacings each. quarter is nil if there is no such mesh.
func Compare(own, half, quarter *Results, ratio float64) *Errors {
	of := func(value func(*Results) *float64) *float64 {
		fine, coarse, coarsest := value(own), value(half), new(math.NaN())
		if quarter != nil {
			coarsest = value(quarter)
		}
		if fine == nil || coarse == nil || coarsest == nil {
			return nil
		}
		return finite(richardson.Error(*fine, *coarse, *coarsest, ratio))
	}
	e := &Errors{
		Energy: of(func(r *Results) *float64 { return r.Energy }),
		Mean:   of(func(r *Results) *float64 { return r.Mean }),
		Flux:   map[string]*float64{},
	}
	for side := range own.Flux {
		e.Flux[side] = of(func(r *Results) *float64 { return r.Flux[side] })
	}
	for i := range own.Regions {
		e.Regions = append(e.Regions, of(func(r *Results) *float64 { return own.counterpart(i, r).flux() }))
		e.Values = append(e.Values, of(func(r *Results) *float64 { return own.counterpart(i, r).value() }))
	}
	return e
}

// counterpart returns the region of another mesh that is region i of r: the one of its name, or without names the only
// one with its values. It is nil if there is none.
func (r *Results) counterpart(i int, other *Results) *Region {
	g := r.Regions[i]
	alike := func(o Region) bool { return o.Name == g.Name && (g.Name != "" || o.Min == g.Min && o.Max == g.Max) }
	var found []Region
	for _, all := range [...][]Region{r.Regions, other.Regions} {
		if found = slices.DeleteFunc(slices.Clone(all), func(o Region) bool { return !alike(o) }); len(found) != 1 {
			return nil
		}
	}
	return &found[0]
}

// flux returns the flux of a region; nil of none.
func (g *Region) flux() *float64 {
	if g == nil {
		return nil
	}
	return g.Flux
}

// value returns the value of a region that floats; nil of another one.
func (g *Region) value() *float64 {
	if g == nil || !g.Floating {
		return nil
	}
	return &g.Min
}
