package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

func simdFamilies() []family {
	x := cpu.X86
	return []family{
		{
			name:   "avx512",
			usable: x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL,
			f32: Kernel{Lanes: 16, Sweep: sweepAVX512F32, Stream: streamAVX512F32, Edge: edgeAVX512F32,
				Fixed:     Pair{fixedAVX512F32, streamFixedAVX512F32},
				General:   Pair{generalAVX512F32, streamGeneralAVX512F32},
				Whole:     Pair{wholeAVX512F32, streamWholeAVX512F32},
				Bare:      Pair{bareAVX512F32, streamBareAVX512F32},
				BareWhole: Pair{bareWholeAVX512F32, streamBareWholeAVX512F32},
				Pack:      packAVX512F32, Unpack: unpackAVX512F32, collect: collectAVX512F32},
			f64: Kernel{Lanes: 8, Sweep: sweepAVX512F64, Stream: streamAVX512F64, Edge: edgeAVX512F64,
				Fixed:         Pair{fixedAVX512F64, streamFixedAVX512F64},
				General:       Pair{generalAVX512F64, streamGeneralAVX512F64},
				Whole:         Pair{wholeAVX512F64, streamWholeAVX512F64},
				Bare:          Pair{bareAVX512F64, streamBareAVX512F64},
				BareWhole:     Pair{bareWholeAVX512F64, streamBareWholeAVX512F64},
				Weighted:      Pair{weightedAVX512F64, streamWeightedAVX512F64},
				WeightedWhole: Pair{weightedWholeAVX512F64, streamWeightedWholeAVX512F64},
				Pack:          packAVX512F64, Unpack: unpackAVX512F64, collect: collectAVX512F64},
		},
		{
			name:   "avx2",
			usable: x.HasAVX2 && x.HasFMA,
			f32: Kernel{Lanes: 8, Sweep: sweepAVX2F32, Stream: streamAVX2F32, Edge: edgeAVX2F32,
				Fixed:     Pair{fixedAVX2F32, streamFixedAVX2F32},
				General:   Pair{generalAVX2F32, streamGeneralAVX2F32},
				Whole:     Pair{wholeAVX2F32, streamWholeAVX2F32},
				Bare:      Pair{bareAVX2F32, streamBareAVX2F32},
				BareWhole: Pair{bareWholeAVX2F32, streamBareWholeAVX2F32},
				collect:   collectAVX2F32},
			f64: Kernel{Lanes: 4, Sweep: sweepAVX2F64, Stream: streamAVX2F64, Edge: edgeAVX2F64,
				Fixed:         Pair{fixedAVX2F64, streamFixedAVX2F64},
				General:       Pair{generalAVX2F64, streamGeneralAVX2F64},
				Whole:         Pair{wholeAVX2F64, streamWholeAVX2F64},
				Bare:          Pair{bareAVX2F64, streamBareAVX2F64},
				BareWhole:     Pair{bareWholeAVX2F64, streamBareWholeAVX2F64},
				Weighted:      Pair{weightedAVX2F64, streamWeightedAVX2F64},
				WeightedWhole: Pair{weightedWholeAVX2F64, streamWeightedWholeAVX2F64},
				collect:       collectAVX2F64},
		},
	}
}

//go:noescape
func sweepAVX512F32(s *Span)

//go:noescape
func streamAVX512F32(s *Span)

//go:noescape
func edgeAVX512F32(s *Span)

//go:noescape
func fixedAVX512F32(s *Span)

//go:noescape
func streamFixedAVX512F32(s *Span)

//go:noescape
func wholeAVX512F32(s *Span)

//go:noescape
func streamWholeAVX512F32(s *Span)

//go:noescape
func generalAVX512F32(s *Span)

//go:noescape
func streamGeneralAVX512F32(s *Span)

//go:noescape
func bareAVX512F32(s *Span)

//go:noescape
func streamBareAVX512F32(s *Span)

//go:noescape
func bareWholeAVX512F32(s *Span)

//go:noescape
func streamBareWholeAVX512F32(s *Span)

//go:noescape
func collectAVX512F32(c *Collector, acc unsafe.Pointer, n int) bool

//go:noescape
func packAVX512F32(dst, src unsafe.Pointer, blocks int)

//go:noescape
func unpackAVX512F32(dst, src unsafe.Pointer, blocks int)

//go:noescape
func sweepAVX512F64(s *Span)

//go:noescape
func streamAVX512F64(s *Span)

//go:noescape
func edgeAVX512F64(s *Span)

//go:noescape
func fixedAVX512F64(s *Span)

//go:noescape
func streamFixedAVX512F64(s *Span)

//go:noescape
func wholeAVX512F64(s *Span)

//go:noescape
func streamWholeAVX512F64(s *Span)

//go:noescape
func generalAVX512F64(s *Span)

//go:noescape
func streamGeneralAVX512F64(s *Span)

//go:noescape
func weightedAVX512F64(s *Span)

//go:noescape
func streamWeightedAVX512F64(s *Span)

//go:noescape
func weightedWholeAVX512F64(s *Span)

//go:noescape
func streamWeightedWholeAVX512F64(s *Span)

//go:noescape
func bareAVX512F64(s *Span)

//go:noescape
func streamBareAVX512F64(s *Span)

//go:noescape
func bareWholeAVX512F64(s *Span)

//go:noescape
func streamBareWholeAVX512F64(s *Span)

//go:noescape
func collectAVX512F64(c *Collector, acc unsafe.Pointer, n int) bool

//go:noescape
func packAVX512F64(dst, src unsafe.Pointer, blocks int)

//go:noescape
func unpackAVX512F64(dst, src unsafe.Pointer, blocks int)

//go:noescape
func sweepAVX2F32(s *Span)

//go:noescape
func streamAVX2F32(s *Span)

//go:noescape
func edgeAVX2F32(s *Span)

//go:noescape
func fixedAVX2F32(s *Span)

//go:noescape
func streamFixedAVX2F32(s *Span)

//go:noescape
func wholeAVX2F32(s *Span)

//go:noescape
func streamWholeAVX2F32(s *Span)

//go:noescape
func generalAVX2F32(s *Span)

//go:noescape
func streamGeneralAVX2F32(s *Span)

//go:noescape
func bareAVX2F32(s *Span)

//go:noescape
func streamBareAVX2F32(s *Span)

//go:noescape
func bareWholeAVX2F32(s *Span)

//go:noescape
func streamBareWholeAVX2F32(s *Span)

//go:noescape
func collectAVX2F32(c *Collector, acc unsafe.Pointer, n int) bool

//go:noescape
func sweepAVX2F64(s *Span)

//go:noescape
func streamAVX2F64(s *Span)

//go:noescape
func edgeAVX2F64(s *Span)

//go:noescape
func fixedAVX2F64(s *Span)

//go:noescape
func streamFixedAVX2F64(s *Span)

//go:noescape
func wholeAVX2F64(s *Span)

//go:noescape
func streamWholeAVX2F64(s *Span)

//go:noescape
func generalAVX2F64(s *Span)

//go:noescape
func streamGeneralAVX2F64(s *Span)

//go:noescape
func weightedAVX2F64(s *Span)

//go:noescape
func streamWeightedAVX2F64(s *Span)

//go:noescape
func weightedWholeAVX2F64(s *Span)

//go:noescape
func streamWeightedWholeAVX2F64(s *Span)

//go:noescape
func bareAVX2F64(s *Span)

//go:noescape
func streamBareAVX2F64(s *Span)

//go:noescape
func bareWholeAVX2F64(s *Span)

//go:noescape
func streamBareWholeAVX2F64(s *Span)

//go:noescape
func collectAVX2F64(c *Collector, acc unsafe.Pointer, n int) bool
