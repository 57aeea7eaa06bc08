package levels

// functionsOf returns the functions of a kernel of package kernel; nil if there are none. Their lanes are those of four
// vectors.
func functionsOf(name string) (f32, f64 *functions) {
	if name != "neon" {
		return nil, nil
	}
	f32 = &functions{lanes: 16, sweep: sweepNEONF32, sweepSource: sweepSourceNEONF32, defects: defectsNEONF32,
		defectsSource: defectsSourceNEONF32, add: addNEONF32, scale: scaleNEONF32, addScaled: addScaledNEONF32,
		blend: blendNEONF32, gather: gatherNEONF32, between: betweenNEONF32}
	f64 = &functions{lanes: 8, sweep: sweepNEONF64, sweepSource: sweepSourceNEONF64, defects: defectsNEONF64,
		defectsSource: defectsSourceNEONF64, add: addNEONF64, squares: squaresNEONF64, narrow: narrowNEONF64,
		subtract: subtractNEONF64, products: productsNEONF64, step: stepNEONF64}
	return f32, f64
}

//go:noescape
func sweepNEONF32(r *rowArgs)

//go:noescape
func sweepSourceNEONF32(r *rowArgs)

//go:noescape
func defectsNEONF32(r *rowArgs)

//go:noescape
func defectsSourceNEONF32(r *rowArgs)

//go:noescape
func addNEONF32(r *rowArgs)

//go:noescape
func scaleNEONF32(r *rowArgs)

//go:noescape
func addScaledNEONF32(r *rowArgs)

//go:noescape
func blendNEONF32(r *rowArgs)

//go:noescape
func gatherNEONF32(r *rowArgs)

//go:noescape
func betweenNEONF32(r *rowArgs)

//go:noescape
func sweepNEONF64(r *rowArgs)

//go:noescape
func sweepSourceNEONF64(r *rowArgs)

//go:noescape
func defectsNEONF64(r *rowArgs)

//go:noescape
func defectsSourceNEONF64(r *rowArgs)

//go:noescape
func addNEONF64(r *rowArgs)

//go:noescape
func squaresNEONF64(r *rowArgs)

//go:noescape
func narrowNEONF64(r *rowArgs)

//go:noescape
func subtractNEONF64(r *rowArgs)

//go:noescape
func productsNEONF64(r *rowArgs)

//go:noescape
func stepNEONF64(r *rowArgs)
