package kernel

// simdFamilies returns that of NEON, which every arm64 processor has. Its stores do not bypass the caches: Arm's
// instructions for that are hints.
func simdFamilies() []family {
	return []family{{name: "neon", usable: true, f32: kernelNEONF32(), f64: kernelNEONF64()}}
}
