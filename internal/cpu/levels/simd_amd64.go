package levels

// functionsOf returns the functions of a kernel of package kernel, which the machine has; nil if there are none.
func functionsOf(name string) (f32, f64 *functions) {
	switch name {
	case "avx512":
		f32 = &functions{lanes: 16, sweep: sweepAVX512F32, sweepSource: sweepSourceAVX512F32, pair: pairAVX512F32,
			pairSource: pairSourceAVX512F32, defects: defectsAVX512F32,
			defectsSource: defectsSourceAVX512F32, add: addAVX512F32, scale: scaleAVX512F32,
			addScaled: addScaledAVX512F32, blend: blendAVX512F32, gather: gatherAVX512F32,
			between: betweenAVX512F32}
		f64 = &functions{lanes: 8, sweep: sweepAVX512F64, sweepSource: sweepSourceAVX512F64, pair: pairAVX512F64,
			pairSource: pairSourceAVX512F64, defects: defectsAVX512F64,
			defectsSource: defectsSourceAVX512F64, add: addAVX512F64, squares: squaresAVX512F64,
			narrow:   narrowAVX512F64,
			subtract: subtractAVX512F64, products: productsAVX512F64, step: stepAVX512F64}
	case "avx2":
		f32 = &functions{lanes: 8, sweep: sweepAVX2F32, sweepSource: sweepSourceAVX2F32, pair: pairAVX2F32,
			pairSource: pairSourceAVX2F32, defects: defectsAVX2F32,
			defectsSource: defectsSourceAVX2F32, add: addAVX2F32, scale: scaleAVX2F32, addScaled: addScaledAVX2F32,
			blend: blendAVX2F32, gather: gatherAVX2F32, between: betweenAVX2F32}
		f64 = &functions{lanes: 4, sweep: sweepAVX2F64, sweepSource: sweepSourceAVX2F64, pair: pairAVX2F64,
			pairSource: pairSourceAVX2F64, defects: defectsAVX2F64,
			defectsSource: defectsSourceAVX2F64, add: addAVX2F64, squares: squaresAVX2F64, narrow: narrowAVX2F64,
			subtract: subtractAVX2F64, products: productsAVX2F64, step: stepAVX2F64}
	}
	return f32, f64
}

//go:noescape
func sweepAVX512F32(r *rowArgs)

//go:noescape
func sweepSourceAVX512F32(r *rowArgs)

//go:noescape
func defectsAVX512F32(r *rowArgs)

//go:noescape
func defectsSourceAVX512F32(r *rowArgs)

//go:noescape
func addAVX512F32(r *rowArgs)

//go:noescape
func scaleAVX512F32(r *rowArgs)

//go:noescape
func addScaledAVX512F32(r *rowArgs)

//go:noescape
func blendAVX512F32(r *rowArgs)

//go:noescape
func gatherAVX512F32(r *rowArgs)

//go:noescape
func betweenAVX512F32(r *rowArgs)

//go:noescape
func sweepAVX512F64(r *rowArgs)

//go:noescape
func sweepSourceAVX512F64(r *rowArgs)

//go:noescape
func defectsAVX512F64(r *rowArgs)

//go:noescape
func defectsSourceAVX512F64(r *rowArgs)

//go:noescape
func addAVX512F64(r *rowArgs)

//go:noescape
func squaresAVX512F64(r *rowArgs)

//go:noescape
func narrowAVX512F64(r *rowArgs)

//go:noescape
func sweepAVX2F32(r *rowArgs)

//go:noescape
func sweepSourceAVX2F32(r *rowArgs)

//go:noescape
func defectsAVX2F32(r *rowArgs)

//go:noescape
func defectsSourceAVX2F32(r *rowArgs)

//go:noescape
func addAVX2F32(r *rowArgs)

//go:noescape
func scaleAVX2F32(r *rowArgs)

//go:noescape
func addScaledAVX2F32(r *rowArgs)

//go:noescape
func blendAVX2F32(r *rowArgs)

//go:noescape
func gatherAVX2F32(r *rowArgs)

//go:noescape
func betweenAVX2F32(r *rowArgs)

//go:noescape
func sweepAVX2F64(r *rowArgs)

//go:noescape
func sweepSourceAVX2F64(r *rowArgs)

//go:noescape
func defectsAVX2F64(r *rowArgs)

//go:noescape
func defectsSourceAVX2F64(r *rowArgs)

//go:noescape
func addAVX2F64(r *rowArgs)

//go:noescape
func squaresAVX2F64(r *rowArgs)

//go:noescape
func narrowAVX2F64(r *rowArgs)

//go:noescape
func subtractAVX512F64(r *rowArgs)

//go:noescape
func productsAVX512F64(r *rowArgs)

//go:noescape
func stepAVX512F64(r *rowArgs)

//go:noescape
func subtractAVX2F64(r *rowArgs)

//go:noescape
func productsAVX2F64(r *rowArgs)

//go:noescape
func stepAVX2F64(r *rowArgs)

//go:noescape
func pairAVX512F32(r *rowArgs)

//go:noescape
func pairSourceAVX512F32(r *rowArgs)

//go:noescape
func pairAVX512F64(r *rowArgs)

//go:noescape
func pairSourceAVX512F64(r *rowArgs)

//go:noescape
func pairAVX2F32(r *rowArgs)

//go:noescape
func pairSourceAVX2F32(r *rowArgs)

//go:noescape
func pairAVX2F64(r *rowArgs)

//go:noescape
func pairSourceAVX2F64(r *rowArgs)
