package kernel

import "unsafe"

// simdFamilies returns that of NEON, which every arm64 processor has. Its stores do not bypass the caches: Arm's
// instructions for that are hints.
func simdFamilies() []family {
	return []family{{
		name:   "neon",
		usable: true,
		f32: Kernel{Lanes: 4, Sweep: sweepNEONF32, Edge: edgeNEONF32, Fixed: Pair{Sweep: fixedNEONF32},
			General: Pair{Sweep: generalNEONF32}, Whole: Pair{Sweep: wholeNEONF32},
			Bare: Pair{Sweep: bareNEONF32}, BareWhole: Pair{Sweep: bareWholeNEONF32},
			Pack: packNEONF32, Unpack: unpackNEONF32, collect: collectNEONF32},
		f64: Kernel{Lanes: 2, Sweep: sweepNEONF64, Edge: edgeNEONF64, Fixed: Pair{Sweep: fixedNEONF64},
			General: Pair{Sweep: generalNEONF64}, Whole: Pair{Sweep: wholeNEONF64},
			Bare: Pair{Sweep: bareNEONF64}, BareWhole: Pair{Sweep: bareWholeNEONF64},
			Weighted: Pair{Sweep: weightedNEONF64}, WeightedWhole: Pair{Sweep: weightedWholeNEONF64},
			Pack: packNEONF64, Unpack: unpackNEONF64, collect: collectNEONF64},
	}}
}

//go:noescape
func sweepNEONF32(s *Span)

//go:noescape
func edgeNEONF32(s *Span)

//go:noescape
func fixedNEONF32(s *Span)

//go:noescape
func wholeNEONF32(s *Span)

//go:noescape
func generalNEONF32(s *Span)

//go:noescape
func bareNEONF32(s *Span)

//go:noescape
func bareWholeNEONF32(s *Span)

//go:noescape
func collectNEONF32(c *Collector, acc unsafe.Pointer, n int) bool

//go:noescape
func packNEONF32(dst, src unsafe.Pointer, blocks int)

//go:noescape
func unpackNEONF32(dst, src unsafe.Pointer, blocks int)

//go:noescape
func sweepNEONF64(s *Span)

//go:noescape
func edgeNEONF64(s *Span)

//go:noescape
func fixedNEONF64(s *Span)

//go:noescape
func wholeNEONF64(s *Span)

//go:noescape
func generalNEONF64(s *Span)

//go:noescape
func weightedNEONF64(s *Span)

//go:noescape
func weightedWholeNEONF64(s *Span)

//go:noescape
func bareNEONF64(s *Span)

//go:noescape
func bareWholeNEONF64(s *Span)

//go:noescape
func collectNEONF64(c *Collector, acc unsafe.Pointer, n int) bool

//go:noescape
func packNEONF64(dst, src unsafe.Pointer, blocks int)

//go:noescape
func unpackNEONF64(dst, src unsafe.Pointer, blocks int)
