package kernel

import "unsafe"

type float interface{ float32 | float64 }

// portable returns the kernel in plain Go. Its blocks are four columns in dense order. Every product that is added to
// another value is converted first, since otherwise the compiler may fuse the two on some machines.
func portable[F float]() Kernel {
	k := Kernel{Lanes: 1}
	for o := range operators {
		masked := Pair{Sweep: func(s *Span) { maskedPortable[F](s, o) }}
		bare := Pair{Sweep: func(s *Span) { bareValuesPortable[F](s, o) }}
		k.ByOperator[o] = Functions{Whole: masked, Masked: masked, Bare: bare}
	}
	plain := &k.ByOperator[Plain]
	plain.Whole.Sweep, plain.Bare.Sweep = sweepPortable[F], barePortable[F]
	return k
}

func sweepPortable[F float](s *Span) {
	n := 4 * s.Blocks
	acc := unsafe.Slice((*F)(unsafe.Add(s.Acc, s.AccOff)), s.Blocks)
	if s.Restart != 0 {
		clear(acc)
	}
	least := smallest[F]()
	carry := unsafe.Slice((*F)(s.Carry), s.Rows)
	for r := range s.Rows {
		acc = nextGroups(s, r, acc)
		north, row, south, dst := rowsPortable[F](s, r, n)
		west := carry[r]
		for b := range acc {
			var d [4]F
			for j := range d {
				i := 4*b + j
				v := update(west, row[i+1], north[i], south[i])
				west = row[i]
				d[j] = v - row[i]
				dst[i] = v
			}
			acc[b] += FMA(d[1], d[1], FMA(d[0], d[0], least)) + FMA(d[3], d[3], FMA(d[2], d[2], least))
		}
		carry[r] = west
	}
}

// rowsPortable returns, of row r of a span, the n values that a sweep writes to dst and the rows that it reads.
func rowsPortable[F float](s *Span, r, n int) (north, row, south, dst []F) {
	return unsafe.Slice((*F)(unsafe.Add(s.Src[r], s.Off)), n),
		unsafe.Slice((*F)(unsafe.Add(s.Src[r+1], s.Off)), n+1), // and the value east of the last one
		unsafe.Slice((*F)(unsafe.Add(s.Src[r+2], s.Off)), n),
		unsafe.Slice((*F)(unsafe.Add(s.Dst[r], s.Off)), n)
}

// nextGroups returns the sums of the groups of row r; acc has those of the row before.
func nextGroups[F float](s *Span, r int, acc []F) []F {
	if r != s.Break {
		return acc
	}
	acc = unsafe.Slice((*F)(unsafe.Add(s.Acc, s.AccOff+s.AccNext)), len(acc))
	clear(acc)
	return acc
}

// maskedPortable sweeps blocks under the masks in Swept.
func maskedPortable[F float](s *Span, o Operator) {
	n, update, each := 4*s.Blocks, updaterOf[F](o, s), 4*o.Terms()
	acc := unsafe.Slice((*F)(unsafe.Add(s.Acc, s.AccOff)), s.Blocks)
	if s.Restart != 0 {
		clear(acc)
	}
	least := smallest[F]()
	carry := unsafe.Slice((*F)(s.Carry), s.Rows)
	for r := range s.Rows {
		acc = nextGroups(s, r, acc)
		north, row, south, dst := rowsPortable[F](s, r, n)
		swept := unsafe.Slice((*byte)(unsafe.Add(s.Swept[r], s.SweptOff)), n)
		sources, terms := north, north // not read
		if o != Plain {
			sources, terms = valuesPortable[F](s, r, o)
		}
		west := carry[r]
		for k := range acc {
			var d [4]F
			for j := range d {
				i := 4*k + j
				v := row[i]
				if swept[i] != 0 {
					v = update(west, row[i+1], north[i], south[i], sources[i], terms[k*each+min(j, each):])
				}
				west = row[i]
				d[j] = v - row[i]
				dst[i] = v
			}
			acc[k] += FMA(d[1], d[1], FMA(d[0], d[0], least)) + FMA(d[3], d[3], FMA(d[2], d[2], least))
		}
		carry[r] = west
	}
}

// valuesPortable returns b and the weights of the blocks of row r of a span.
func valuesPortable[F float](s *Span, r int, o Operator) (sources, terms []F) {
	n := o.Terms()
	return unsafe.Slice((*F)(unsafe.Add(s.Sources[r], s.Off)), 4*s.Blocks),
		unsafe.Slice((*F)(unsafe.Add(s.Terms[r], n*s.Off)), 4*n*s.Blocks)
}

func barePortable[F float](s *Span) {
	carry := unsafe.Slice((*F)(s.Carry), s.Rows)
	for r := range s.Rows {
		north, row, south, dst := rowsPortable[F](s, r, 4*s.Blocks)
		west := carry[r]
		for i := range dst {
			v := update(west, row[i+1], north[i], south[i])
			west = row[i]
			dst[i] = v
		}
		carry[r] = west
	}
}

// bareValuesPortable is barePortable for an operator with values.
func bareValuesPortable[F float](s *Span, o Operator) {
	update, each := updaterOf[F](o, s), 4*o.Terms()
	carry := unsafe.Slice((*F)(s.Carry), s.Rows)
	for r := range s.Rows {
		north, row, south, dst := rowsPortable[F](s, r, 4*s.Blocks)
		sources, terms := valuesPortable[F](s, r, o)
		west := carry[r]
		for i := range dst {
			v := update(west, row[i+1], north[i], south[i], sources[i], terms[i/4*each+min(i%4, each):])
			west = row[i]
			dst[i] = v
		}
		carry[r] = west
	}
}

// smallest returns the smallest normal number. Every sum of squares begins with it, so that no fused result is
// denormal.
func smallest[F float]() F {
	least := smallest64
	if unsafe.Sizeof(F(0)) == 4 {
		least = smallest32
	}
	return F(least)
}
