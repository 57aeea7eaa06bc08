//go:build !amd64

package rowmath

func ratios(_, _, _ []float64) int     { return 0 }
func means(_, _, _ []float64) int      { return 0 }
func scale(_, _, _ []float64) int      { return 0 }
func centres(_, _, _, _ []float64) int { return 0 }
func residuals([]float64, *Points) int { return 0 }

func quotients(_, _ []float64, _ float64) int         { return 0 }
func shift(_, _ []float64, _ float64) int             { return 0 }
func count([]float64, int, float64) int               { return 0 }
func within([]float64, float64, float64) int          { return 0 }
func least([]float64, *[4]float64) (done int, _ bool) { return 0, false }
func largest([]float64, *[4]float64) int              { return 0 }
