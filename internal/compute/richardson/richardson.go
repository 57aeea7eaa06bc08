// Package richardson estimates what a mesh leaves of an error from solutions on coarser meshes.
package richardson

import "math"

// The observed orders that count. A scheme of second order may show a higher one by chance, and below the least one the
// differences say nothing of the limit.
const (
	leastOrder = 0.1
	mostOrder  = 2
)

// safety multiplies the largest difference where differences do not fall steadily, or no order is known.
const safety = 3

// followed is the largest part of a figure by which it differs between meshes that follow the field.
const followed = 0.2

// Error estimates how far a value on a mesh is from its limit, by the values on a coarser mesh and on one still
// coarser, each with ratio times the spacings of the one before. NaN as the third value says that there is no such
// mesh.
//
// If d1 is the difference of the first two and d2 that of the last two, the observed order is p =
// log(d2/d1)/log(ratio), and the error is about d1/(ratio^p - 1) (Roache, J. Fluids Eng. 116, 1994). Where p is above
// 2, the error is that of order 2 from d2, which is larger. Where p is below 0.1, it is three times the larger one.
// Where d1 and d2 differ in sign, as edges lie differently in the meshes, it is the larger one of d1 and d2/ratio, or
// three times the larger difference if that is more than a fifth of the value.
func Error(fine, half, quarter, ratio float64) float64 {
	d1, d2 := fine-half, half-quarter
	if d1*d2 < 0 {
		d1, d2 = math.Abs(d1), math.Abs(d2)
		if larger := math.Max(d1, d2); larger > followed*math.Abs(fine) {
			return safety * larger
		}
		return math.Max(d1, d2/ratio)
	}
	return OfDifferences(math.Abs(d1), math.Abs(d2), ratio)
}

// OfDifferences is Error for two norms of differences.
func OfDifferences(d1, d2, ratio float64) float64 {
	p := math.Log(d2/d1) / math.Log(ratio)
	switch {
	case math.IsNaN(d2):
		return safety * d1
	case d1 == 0 && d2 == 0:
		return 0
	case p > mostOrder:
		square := float64(ratio * ratio)
		return d2 / (float64(square*square) - square)
	case p >= leastOrder:
		return d1 / (math.Pow(ratio, p) - 1)
	}
	return safety * math.Max(d1, d2)
}
