package kernel

import "golang.org/x/sys/cpu"

func simdFamilies() []family {
	x := cpu.X86
	return []family{
		{
			name:   "avx512",
			usable: x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL,
			f32:    kernelAVX512F32(),
			f64:    kernelAVX512F64(),
		},
		{
			name:   "avx2",
			usable: x.HasAVX2 && x.HasFMA,
			f32:    kernelAVX2F32(),
			f64:    kernelAVX2F64(),
		},
	}
}
