package levels

// functionsOf returns the functions of a kernel of package kernel, which the machine has; nil if there are none.
func functionsOf(name string) (f32, f64 *functions) {
	switch name {
	case "avx512":
		f32, f64 = functionsAVX512F32(), functionsAVX512F64()
		f32.shorter, f64.shorter = functionsAVX2F32(), functionsAVX2F64()
		f32.spreadOne, f32.spreadTwo, f32.collect = f32.shorter.spreadOne, f32.shorter.spreadTwo, f32.shorter.collect
		short := f64.shorter
		f64.split, f64.excess, f64.roots, f64.scaling = short.split, short.excess, short.roots, short.scaling
		f64.interpolateAlong, f64.interpolateAcross = short.interpolateAlong, short.interpolateAcross
		f64.interpolateBoth, f64.residuals = short.interpolateBoth, short.residuals
	case "avx2":
		f32, f64 = functionsAVX2F32(), functionsAVX2F64()
	}
	return f32, f64
}
