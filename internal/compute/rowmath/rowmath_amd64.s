#include "textflag.h"

// n is a multiple of 4 above 0. Comparison 4 is "not equal", and true for NaN.

// func ratiosAVX2(dst, a, b unsafe.Pointer, n int)
TEXT ·ratiosAVX2(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   a+8(FP), SI
	MOVQ   b+16(FP), DX
	MOVQ   n+24(FP), CX
	XORQ   AX, AX
	VXORPD Y0, Y0, Y0

loop:
	VMOVUPD (SI)(AX*8), Y1
	VMOVUPD (DX)(AX*8), Y2
	VDIVPD  Y2, Y1, Y1
	VCMPPD  $4, Y0, Y2, Y2
	VANDPD  Y2, Y1, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET

// func meansAVX2(dst, a, b unsafe.Pointer, n int)
TEXT ·meansAVX2(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   a+8(FP), SI
	MOVQ   b+16(FP), DX
	MOVQ   n+24(FP), CX
	XORQ   AX, AX
	VXORPD Y0, Y0, Y0

loop:
	VMOVUPD (SI)(AX*8), Y1
	VMOVUPD (DX)(AX*8), Y2
	VADDPD  Y1, Y1, Y3      // 2 a, exactly
	VMULPD  Y2, Y3, Y3
	VADDPD  Y2, Y1, Y4
	VDIVPD  Y4, Y3, Y3
	VCMPPD  $4, Y0, Y1, Y1
	VCMPPD  $4, Y0, Y2, Y2
	VANDPD  Y1, Y2, Y2
	VANDPD  Y2, Y3, Y3
	VMOVUPD Y3, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET

// func scaleAVX2(dst, a unsafe.Pointer, n int, factors unsafe.Pointer, count int)
TEXT ·scaleAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ factors+24(FP), DX
	MOVQ count+32(FP), R8
	XORQ AX, AX

loop:
	VMOVUPD (SI)(AX*8), Y1
	XORQ    BX, BX

factor:
	VBROADCASTSD (DX)(BX*8), Y2
	VMULPD       Y2, Y1, Y1
	INCQ         BX
	CMPQ         BX, R8
	JB           factor
	VMOVUPD      Y1, (DI)(AX*8)
	ADDQ         $4, AX
	CMPQ         AX, CX
	JB           loop
	VZEROUPPER
	RET

// func centresAVX2(dst, along, above, below unsafe.Pointer, n int)
TEXT ·centresAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ along+8(FP), SI
	MOVQ above+16(FP), DX
	MOVQ below+24(FP), R8
	MOVQ n+32(FP), CX
	XORQ AX, AX

loop:
	VMOVUPD (SI)(AX*8), Y1
	VADDPD  8(SI)(AX*8), Y1, Y1
	VMOVUPD (DX)(AX*8), Y2
	VADDPD  (R8)(AX*8), Y2, Y2
	VADDPD  Y2, Y1, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET

// TERM adds to Y4 the weight g/d times the difference from the value of a neighbour: d is Y1, u Y2, and Y3 has the lanes
// where d is not 0.
#define TERM(g, neighbour) \
	VMOVUPD g, Y5            \
	VDIVPD  Y1, Y5, Y5       \
	VANDPD  Y3, Y5, Y5       \
	VMOVUPD neighbour, Y6    \
	VSUBPD  Y2, Y6, Y6       \
	VMULPD  Y6, Y5, Y5       \
	VADDPD  Y5, Y4, Y4

// func updatesAVX2(dst, d, b, hold, along, above, below, u, north, south unsafe.Pointer, n int)
TEXT ·updatesAVX2(SB), NOSPLIT, $0-88
	MOVQ   dst+0(FP), DI
	MOVQ   d+8(FP), SI
	MOVQ   b+16(FP), DX
	MOVQ   hold+24(FP), BX
	MOVQ   along+32(FP), R8
	MOVQ   above+40(FP), R9
	MOVQ   below+48(FP), R10
	MOVQ   u+56(FP), R11
	MOVQ   north+64(FP), R12
	MOVQ   south+72(FP), R13
	MOVQ   n+80(FP), CX
	XORQ   AX, AX
	VXORPD Y0, Y0, Y0

loop:
	VMOVUPD (SI)(AX*8), Y1
	VMOVUPD 8(R11)(AX*8), Y2
	VCMPPD  $4, Y0, Y1, Y3
	VMULPD  (BX)(AX*8), Y2, Y5
	VMOVUPD (DX)(AX*8), Y4
	VSUBPD  Y5, Y4, Y4
	TERM((R8)(AX*8), (R11)(AX*8))
	TERM(8(R8)(AX*8), 16(R11)(AX*8))
	TERM((R9)(AX*8), (R12)(AX*8))
	TERM((R10)(AX*8), (R13)(AX*8))
	VMOVUPD Y4, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET
