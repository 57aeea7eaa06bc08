//go:build !amd64

package rowmath

func ratios(_, _, _ []float64) int     { return 0 }
func means(_, _, _ []float64) int      { return 0 }
func scale(_, _, _ []float64) int      { return 0 }
func centres(_, _, _, _ []float64) int { return 0 }
func updates([]float64, *Points) int   { return 0 }
