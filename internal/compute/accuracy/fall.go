package accuracy

import "math"

// Fall tells by how much the norms of a run fall from one to the next, on average. The zero Fall has no norm.
type Fall struct {
	first, last float64
	count       int
}

// Add adds the next norms.
func (f *Fall) Add(norms []float64) {
	for _, norm := range norms {
		if f.count == 0 {
			f.first = norm
		}
		f.last = norm
		f.count++
	}
}

// rate returns the quotient of a norm and the one before it; infinite with fewer than two norms.
func (f *Fall) rate() float64 {
	if f.count < 2 {
		return math.Inf(1)
	}
	return math.Pow(f.last/f.first, 1/float64(f.count-1))
}
