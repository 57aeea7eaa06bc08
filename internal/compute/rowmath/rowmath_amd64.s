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

// func scaleAVX2(dst, a unsafe.Pointer, n int, factors unsafe.Pointer)
// There are four factors.
TEXT ·scaleAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         a+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         factors+24(FP), DX
	VBROADCASTSD (DX), Y2
	VBROADCASTSD 8(DX), Y3
	VBROADCASTSD 16(DX), Y4
	VBROADCASTSD 24(DX), Y5
	XORQ         AX, AX

loop:
	VMULPD  (SI)(AX*8), Y2, Y1
	VMULPD  Y3, Y1, Y1
	VMULPD  Y4, Y1, Y1
	VMULPD  Y5, Y1, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
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

// TERM adds g times the difference between the value of a neighbour and u, which is Y2, to Y4.
#define TERM(g, neighbour) \
	VMOVUPD neighbour, Y6    \
	VSUBPD  Y2, Y6, Y6       \
	VMULPD  g, Y6, Y6        \
	VADDPD  Y6, Y4, Y4

// func residualsAVX2(dst, d, b, hold, along, above, below, u, north, south unsafe.Pointer, n int)
TEXT ·residualsAVX2(SB), NOSPLIT, $0-88
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

loop:
	VMOVUPD 8(R11)(AX*8), Y2
	VMULPD  (BX)(AX*8), Y2, Y5
	VMOVUPD (DX)(AX*8), Y4
	VSUBPD  Y5, Y4, Y4
	VMULPD  (SI)(AX*8), Y4, Y4
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

// func quotientsAVX2(dst, a unsafe.Pointer, n int, d, inverse, least, most float64)
// The quotient q is a times the inverse of d, to which the remainder a - q d times the inverse is added. Four numbers of
// which the absolute value of one is not from least to most are divided.
TEXT ·quotientsAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst+0(FP), DI
	MOVQ         a+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD d+24(FP), Y0
	VBROADCASTSD inverse+32(FP), Y7
	VBROADCASTSD least+40(FP), Y8
	VBROADCASTSD most+48(FP), Y9
	VPCMPEQD     Y10, Y10, Y10
	VPSRLQ       $1, Y10, Y10
	XORQ         AX, AX

loop:
	VMOVUPD   (SI)(AX*8), Y1
	VANDPD    Y10, Y1, Y2
	VCMPPD    $13, Y8, Y2, Y3 // at least
	VCMPPD    $2, Y9, Y2, Y2  // at most
	VANDPD    Y2, Y3, Y3
	VMOVMSKPD Y3, DX
	CMPL      DX, $15
	JNE       divide

	VMULPD       Y7, Y1, Y2
	VFNMADD231PD Y0, Y2, Y1
	VFMADD231PD  Y7, Y1, Y2
	VMOVUPD      Y2, (DI)(AX*8)

next:
	ADDQ $4, AX
	CMPQ AX, CX
	JB   loop
	VZEROUPPER
	RET

divide:
	VDIVPD  Y0, Y1, Y1
	VMOVUPD Y1, (DI)(AX*8)
	JMP     next

// func shiftAVX2(dst, a unsafe.Pointer, n int, b float64)
TEXT ·shiftAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         a+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD b+24(FP), Y0
	XORQ         AX, AX

loop:
	VADDPD  (SI)(AX*8), Y0, Y1
	VMOVUPD Y1, (DI)(AX*8)
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET

// func countAVX2(dst, from unsafe.Pointer, n int, step, d float64)
TEXT ·countAVX2(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         from+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD step+24(FP), Y2
	VBROADCASTSD d+32(FP), Y0
	VMOVUPD      (SI), Y1
	XORQ         AX, AX

loop:
	VDIVPD  Y0, Y1, Y3
	VMOVUPD Y3, (DI)(AX*8)
	VADDPD  Y2, Y1, Y1
	ADDQ    $4, AX
	CMPQ    AX, CX
	JB      loop
	VZEROUPPER
	RET

// func withinAVX2(a unsafe.Pointer, n int, least, most float64) int
// Comparisons 13 and 2 are "at least" and "at most", and false for NaN.
TEXT ·withinAVX2(SB), NOSPLIT, $0-40
	MOVQ         a+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSD least+16(FP), Y0
	VBROADCASTSD most+24(FP), Y1
	XORQ         AX, AX

loop:
	VMOVUPD   (SI)(AX*8), Y2
	VCMPPD    $13, Y0, Y2, Y3
	VCMPPD    $2, Y1, Y2, Y4
	VANDPD    Y3, Y4, Y3
	VMOVMSKPD Y3, DX
	CMPL      DX, $15
	JNE       done
	ADDQ      $4, AX
	CMPQ      AX, CX
	JB        loop

done:
	MOVQ AX, ret+32(FP)
	VZEROUPPER
	RET

// func leastAVX2(a unsafe.Pointer, n int, to unsafe.Pointer) int
// Comparison 14 is "above". Y1 has the least values so far, which begin as to, and Y4 the lanes that had a 0.
TEXT ·leastAVX2(SB), NOSPLIT, $0-32
	MOVQ    a+0(FP), SI
	MOVQ    n+8(FP), CX
	MOVQ    to+16(FP), DI
	VMOVUPD (DI), Y1
	VMOVAPD Y1, Y5
	VXORPD  Y0, Y0, Y0
	VXORPD  Y4, Y4, Y4
	XORQ    AX, AX

loop:
	VMOVUPD   (SI)(AX*8), Y2
	VCMPPD    $14, Y0, Y2, Y3
	VCMPPD    $0, Y0, Y2, Y6
	VORPD     Y6, Y4, Y4
	VBLENDVPD Y3, Y2, Y5, Y2
	VMINPD    Y1, Y2, Y1
	ADDQ      $4, AX
	CMPQ      AX, CX
	JB        loop
	VMOVUPD   Y1, (DI)
	VMOVMSKPD Y4, DX
	MOVQ      DX, ret+24(FP)
	VZEROUPPER
	RET

// func largestAVX2(a unsafe.Pointer, n int, to unsafe.Pointer)
// Where a value is NaN, VMAXPD yields its last operand in Intel's order, the largest so far.
TEXT ·largestAVX2(SB), NOSPLIT, $0-24
	MOVQ     a+0(FP), SI
	MOVQ     n+8(FP), CX
	MOVQ     to+16(FP), DI
	VMOVUPD  (DI), Y1
	VPCMPEQD Y0, Y0, Y0
	VPSRLQ   $1, Y0, Y0
	XORQ     AX, AX

loop:
	VANDPD (SI)(AX*8), Y0, Y2
	VMAXPD Y1, Y2, Y1
	ADDQ   $4, AX
	CMPQ   AX, CX
	JB     loop
	VMOVUPD Y1, (DI)
	VZEROUPPER
	RET
