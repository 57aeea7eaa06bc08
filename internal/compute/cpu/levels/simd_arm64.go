package levels

// functionsOf returns the functions of a kernel of package kernel; nil if there are none.
func functionsOf(name string) (f32, f64 *functions) {
	if name != "neon" {
		return nil, nil
	}
	return functionsNEONF32(), functionsNEONF64()
}
