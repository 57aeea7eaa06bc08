#include "textflag.h"

// Values up to `to`, of n values in rows, eight at a time: from the first one on, or from the ninth where differences
// are made. DI, R9, R10 and R11 are the first four planes; the other four of 8-byte values lie 4n bytes behind these.

// Of four values of 4 bytes, first the lowest bytes of all, and so on.
DATA bytes32<>+0(SB)/8, $0x0d0905010c080400
DATA bytes32<>+8(SB)/8, $0x0f0b07030e0a0602
GLOBL bytes32<>(SB), RODATA|NOPTR, $16

// The same of two values of 8 bytes.
DATA bytes64<>+0(SB)/8, $0x0b030a0209010800
DATA bytes64<>+8(SB)/8, $0x0f070e060d050c04
GLOBL bytes64<>(SB), RODATA|NOPTR, $16

#define ARGS \
	MOVQ planes+0(FP), DI \
	MOVQ rows+8(FP), SI   \
	MOVQ n+16(FP), R8     \
	MOVQ to+24(FP), CX    \
	LEAQ (DI)(R8*1), R9   \
	LEAQ (R9)(R8*1), R10  \
	LEAQ (R10)(R8*1), R11

// DIFFER32 sets d to what four values differ by from a straight line, with the sign in the lowest bit.
#define DIFFER32(at, d, last, t) \
	VMOVDQU at(SI)(AX*4), d      \
	VMOVDQU at-4(SI)(AX*4), last \
	VMOVDQU at-8(SI)(AX*4), t    \
	VPSUBD  last, d, d           \
	VPSUBD  last, t, t           \
	VPADDD  t, d, d              \
	VPSRAD  $31, d, t            \
	VPADDD  d, d, d              \
	VPXOR   t, d, d

// func divide32AVX(planes, rows unsafe.Pointer, n, to int)
TEXT ·divide32AVX(SB), NOSPLIT, $0-32
	ARGS
	MOVQ    $8, AX
	VMOVDQU bytes32<>(SB), X15

loop:
	DIFFER32(0, X0, X2, X3)
	DIFFER32(16, X1, X4, X5)
	VPSHUFB    X15, X0, X0
	VPSHUFB    X15, X1, X1
	VPUNPCKLDQ X1, X0, X2
	VPUNPCKHDQ X1, X0, X3
	VMOVQ      X2, (DI)(AX*1)
	VMOVHPS    X2, (R9)(AX*1)
	VMOVQ      X3, (R10)(AX*1)
	VMOVHPS    X3, (R11)(AX*1)
	ADDQ       $8, AX
	CMPQ       AX, CX
	JB         loop
	RET

// VALUE32 makes of differences v with the sign in the lowest bit those of two's complement. Each lane of one is 1.
#define VALUE32(v, t, one, zero) \
	VPAND  one, v, t  \
	VPSUBD t, zero, t \
	VPSRLD $1, v, v   \
	VPXOR  t, v, v

// SUM32 adds to each of four numbers v those before it and the last sum, and sets last to the sum of all. Two of them
// undo the two differences.
#define SUM32(v, t, last) \
	VPSLLDQ $4, v, t     \
	VPADDD  t, v, v      \
	VPSLLDQ $8, v, t     \
	VPADDD  t, v, v      \
	VPADDD  last, v, v   \
	VPSHUFD $0xff, v, last

// func join32AVX(planes, rows unsafe.Pointer, n, to int)
TEXT ·join32AVX(SB), NOSPLIT, $0-32
	ARGS
	XORQ     AX, AX
	VPXOR    X13, X13, X13
	VPCMPEQD X14, X14, X14
	VPSRLD   $31, X14, X14
	VPXOR    X10, X10, X10 // the last difference of two values
	VPXOR    X11, X11, X11 // the last value

loop:
	VMOVQ      (DI)(AX*1), X0
	VMOVQ      (R9)(AX*1), X1
	VMOVQ      (R10)(AX*1), X2
	VMOVQ      (R11)(AX*1), X3
	VPUNPCKLBW X1, X0, X0
	VPUNPCKLBW X3, X2, X2
	VPUNPCKHWD X2, X0, X1
	VPUNPCKLWD X2, X0, X0
	VALUE32(X0, X4, X14, X13)
	VALUE32(X1, X5, X14, X13)
	SUM32(X0, X4, X10)
	SUM32(X1, X5, X10)
	SUM32(X0, X4, X11)
	SUM32(X1, X5, X11)
	VMOVDQU    X0, (SI)(AX*4)
	VMOVDQU    X1, 16(SI)(AX*4)
	ADDQ       $8, AX
	CMPQ       AX, CX
	JB         loop
	RET

// DIFFER64 is DIFFER32 for two values of 8 bytes.
#define DIFFER64(at, d, last, t) \
	VMOVDQU  at(SI)(AX*8), d       \
	VMOVDQU  at-8(SI)(AX*8), last  \
	VMOVDQU  at-16(SI)(AX*8), t    \
	VPSUBQ   last, d, d            \
	VPSUBQ   last, t, t            \
	VPADDQ   t, d, d               \
	VPCMPGTQ d, X13, t             \
	VPADDQ   d, d, d               \
	VPXOR    t, d, d               \
	VPSHUFB  X15, d, d

// func divide64AVX(planes, rows unsafe.Pointer, n, to int)
TEXT ·divide64AVX(SB), NOSPLIT, $0-32
	ARGS
	MOVQ    $8, AX
	LEAQ    (AX)(R8*4), BX
	VMOVDQU bytes64<>(SB), X15
	VPXOR   X13, X13, X13

loop:
	DIFFER64(0, X0, X4, X5)
	DIFFER64(16, X1, X6, X7)
	DIFFER64(32, X2, X4, X5)
	DIFFER64(48, X3, X6, X7)
	VPUNPCKLWD X1, X0, X4
	VPUNPCKHWD X1, X0, X5
	VPUNPCKLWD X3, X2, X6
	VPUNPCKHWD X3, X2, X7
	VPUNPCKLDQ X6, X4, X0
	VPUNPCKHDQ X6, X4, X1
	VPUNPCKLDQ X7, X5, X2
	VPUNPCKHDQ X7, X5, X3
	VMOVQ      X0, (DI)(AX*1)
	VMOVHPS    X0, (R9)(AX*1)
	VMOVQ      X1, (R10)(AX*1)
	VMOVHPS    X1, (R11)(AX*1)
	VMOVQ      X2, (DI)(BX*1)
	VMOVHPS    X2, (R9)(BX*1)
	VMOVQ      X3, (R10)(BX*1)
	VMOVHPS    X3, (R11)(BX*1)
	ADDQ       $8, BX
	ADDQ       $8, AX
	CMPQ       AX, CX
	JB         loop
	RET

// VALUE64 and SUM64 are VALUE32 and SUM32 for two values of 8 bytes.
#define VALUE64(v, t, one, zero) \
	VPAND  one, v, t  \
	VPSUBQ t, zero, t \
	VPSRLQ $1, v, v   \
	VPXOR  t, v, v

#define SUM64(v, t, last) \
	VPSLLDQ $8, v, t   \
	VPADDQ  t, v, v    \
	VPADDQ  last, v, v \
	VPSHUFD $0xee, v, last

// func join64AVX(planes, rows unsafe.Pointer, n, to int)
TEXT ·join64AVX(SB), NOSPLIT, $0-32
	ARGS
	XORQ     AX, AX
	LEAQ     (AX)(R8*4), BX
	VPXOR    X13, X13, X13
	VPCMPEQD X14, X14, X14
	VPSRLQ   $63, X14, X14
	VPXOR    X10, X10, X10
	VPXOR    X11, X11, X11

loop:
	VMOVQ      (DI)(AX*1), X0
	VMOVQ      (R9)(AX*1), X1
	VMOVQ      (R10)(AX*1), X2
	VMOVQ      (R11)(AX*1), X3
	VMOVQ      (DI)(BX*1), X4
	VMOVQ      (R9)(BX*1), X5
	VMOVQ      (R10)(BX*1), X6
	VMOVQ      (R11)(BX*1), X7
	VPUNPCKLBW X1, X0, X0
	VPUNPCKLBW X3, X2, X2
	VPUNPCKLBW X5, X4, X4
	VPUNPCKLBW X7, X6, X6
	VPUNPCKLWD X2, X0, X1
	VPUNPCKHWD X2, X0, X3
	VPUNPCKLWD X6, X4, X5
	VPUNPCKHWD X6, X4, X7
	VPUNPCKLDQ X5, X1, X0
	VPUNPCKHDQ X5, X1, X2
	VPUNPCKLDQ X7, X3, X4
	VPUNPCKHDQ X7, X3, X6
	VALUE64(X0, X1, X14, X13)
	VALUE64(X2, X3, X14, X13)
	VALUE64(X4, X5, X14, X13)
	VALUE64(X6, X7, X14, X13)
	SUM64(X0, X1, X10)
	SUM64(X2, X3, X10)
	SUM64(X4, X5, X10)
	SUM64(X6, X7, X10)
	SUM64(X0, X1, X11)
	SUM64(X2, X3, X11)
	SUM64(X4, X5, X11)
	SUM64(X6, X7, X11)
	VMOVDQU    X0, (SI)(AX*8)
	VMOVDQU    X2, 16(SI)(AX*8)
	VMOVDQU    X4, 32(SI)(AX*8)
	VMOVDQU    X6, 48(SI)(AX*8)
	ADDQ       $8, BX
	ADDQ       $8, AX
	CMPQ       AX, CX
	JB         loop
	RET
