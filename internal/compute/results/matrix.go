package results

import (
	"fmt"
)

// Matrix is that of n regions with values: capacitances, conductances. It is symmetric but for what the solutions lack.
type Matrix struct {
	Regions []string `json:"regions"` // the names, in the order of the rows and the columns
	// Maxwell has the flux into region i where region j is at 1, the other regions and all sides with values are at 0,
	// and nothing else drives the field.
	Maxwell [][]float64 `json:"maxwell"`
	// Mutual has, beside the diagonal, -Maxwell: the flux from i to j over the difference of their values. On the
	// diagonal is the sum of a row of Maxwell: the flux of region i over its value where all regions have that.
	Mutual [][]float64 `json:"mutual"`
	// Sides has, by the name of a side, the fluxes through it where region j is at 1. Together with a column of Maxwell
	// they are what a screening absorbs.
	Sides map[string][]float64 `json:"sides"`
}

// Fluxes are those of a solution.
type Fluxes struct {
	// Regions are those into the regions with values, in their order; nil of one without points.
	Regions []*float64         `json:"regions"`
	Sides   map[string]float64 `json:"sides"`
	Energy  float64            `json:"energy"` // of the field
}

// FluxesOf returns the fluxes of sides and regions.
func FluxesOf(r *Results, names []string) (f Fluxes, err error) {
	finite := func(name string, v *float64) *float64 {
		if v == nil {
			err = fmt.Errorf("the flux of %s is beyond float64", name)
			return new(0.0)
		}
		return v
	}
	f.Sides, f.Energy = map[string]float64{}, *finite("the field's energy", r.Energy)
	for side, flux := range r.Flux {
		f.Sides[side] = *finite(side, flux)
	}
	for _, name := range names {
		var flux *float64
		if g := r.region(name); g != nil {
			flux = finite(name, g.Flux)
		}
		f.Regions = append(f.Regions, flux)
	}
	return f, err
}

// rounding reports whether the flux into the only region that is not at 0, but at 1, is no more than rounding.
// Otherwise it is twice the energy of the field plus the integral of h u^2 over Robin sides. These take at least that
// integral, as u is at most 1, so either the energy or what is taken is no small part of the flux.
func (f Fluxes) rounding(region int, flux float64) bool {
	taken := 0.0
	for _, side := range f.Sides {
		taken -= side
	}
	for i, other := range f.Regions {
		if i != region && other != nil {
			taken -= *other
		}
	}
	return f.Energy <= flux/4 && taken <= flux/4
}

// into returns the flux into a region. The error names one without points.
func (f Fluxes) into(names []string, region int) (float64, error) {
	if flux := f.Regions[region]; flux != nil {
		return *flux, nil
	}
	return 0, fmt.Errorf("no point of the mesh lies in %s", names[region])
}

// region returns the region of a name; nil if there is none.
func (r *Results) region(name string) *Region {
	for i := range r.Regions {
		if r.Regions[i].Name == name {
			return &r.Regions[i]
		}
	}
	return nil
}

// NewMatrix returns the matrix whose columns are those of excited: the fluxes with each of the regions at 1.
func NewMatrix(names []string, excited []Fluxes) (*Matrix, error) {
	m := &Matrix{Regions: names, Sides: map[string][]float64{}}
	for _, column := range excited {
		for side, flux := range column.Sides {
			m.Sides[side] = append(m.Sides[side], flux)
		}
	}
	for i := range names {
		maxwell, mutual, sum := make([]float64, len(names)), make([]float64, len(names)), 0.0
		for j, column := range excited {
			flux, err := column.into(names, i)
			if err != nil {
				return nil, err
			}
			maxwell[j], mutual[j] = flux, 0-flux
			sum += flux
		}
		mutual[i] = sum
		m.Maxwell, m.Mutual = append(m.Maxwell, maxwell), append(m.Mutual, mutual)
	}
	return m, nil
}

// lines returns the matrix for the summary: a line for each region, unless there are many.
func (m *Matrix) lines() [][2]string {
	if len(m.Regions) > maxLines {
		return [][2]string{{"Matrix", fmt.Sprintf("of %d regions, in the report", len(m.Regions))}}
	}
	width := 11
	for _, name := range m.Regions {
		width = max(width, len(name))
	}
	head := fmt.Sprintf("%*s", width, "")
	for _, name := range m.Regions {
		head += fmt.Sprintf(" %*s", width, name)
	}
	lines := [][2]string{{"Matrix", head}}
	for i, name := range m.Regions {
		row := fmt.Sprintf("%-*s", width, name)
		for _, flux := range m.Maxwell[i] {
			row += fmt.Sprintf(" %*.6g", width, flux)
		}
		lines = append(lines, [2]string{"", row})
	}
	return lines
}

// Values returns the values of the floating regions, at the places of floats among all, with which the flux into each
// is the one of charges. grounded are the fluxes with the floating regions at 0, and excited, in the order of floats,
// those with one region at 1 and nothing else. The error names a region that has no points, or whose
// value nothing determines.
func Values(names []string, floats []int, charges []float64, grounded Fluxes, excited []Fluxes) ([]float64, error) {
	n := len(floats)
	a, v := make([][]float64, n), make([]float64, n)
	for i, row := range floats {
		flux, err := grounded.into(names, row)
		if err != nil {
			return nil, err
		}
		v[i] = charges[i] - flux
		for _, column := range excited {
			a[i] = append(a[i], *column.Regions[row])
		}
	}
	for k := range n { // the matrix is symmetric and positive definite, so its diagonal has the pivots
		whole := *excited[k].Regions[floats[k]]
		if !(a[k][k] > leastPivot*whole) || excited[k].rounding(floats[k], whole) {
			return nil, fmt.Errorf("nothing determines the value of %s, which is floating: no material leads from it "+
				"to a side or a region with a value", names[floats[k]])
		}
		for i := k + 1; i < n; i++ {
			factor := a[i][k] / a[k][k]
			for j := k; j < n; j++ {
				a[i][j] -= float64(factor * a[k][j])
			}
			v[i] -= float64(factor * v[k])
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			v[i] -= float64(a[i][j] * v[j])
		}
		v[i] /= a[i][i]
	}
	return v, nil
}

// leastPivot is the part of the flux of a region that has to go to given values. Fluxes lose some 1e-12 of the largest.
const leastPivot = 1e-9
