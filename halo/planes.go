package halo

import "encoding/binary"

// Rows are packed as planes of bytes. Where the processor has AVX, most values are done eight at a time; the result is
// the same.

// eight is how many values are done at a time.
const eight = 8

// divide32 writes the planes of the first n values of rows. It wraps on overflow, as join32 does.
func divide32(planes, rows []byte, n int) {
	divideSome32(planes, rows, n, 0, min(n, eight))
	divideSome32(planes, rows, n, divideEights32(planes, rows, n), n)
}

// divideSome32 does values [from, to). Those before them are in rows.
func divideSome32(planes, rows []byte, n, from, to int) {
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	before, last := twoBefore32(rows, from)
	for i := from; i < to; i++ {
		v := binary.LittleEndian.Uint32(rows[4*i:])
		d := v - (2*last - before)
		before, last = last, v
		d = d<<1 ^ uint32(int32(d)>>31)
		p0[i], p1[i], p2[i], p3[i] = byte(d), byte(d>>8), byte(d>>16), byte(d>>24)
	}
}

// join32 is the inverse of divide32.
func join32(rows, planes []byte, n int) {
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	done := joinEights32(rows, planes, n)
	before, last := twoBefore32(rows, done)
	for i := done; i < n; i++ {
		d := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		v := 2*last - before + (d>>1 ^ -(d & 1))
		before, last = last, v
		binary.LittleEndian.PutUint32(rows[4*i:], v)
	}
}

// twoBefore32 returns the two values before value i, and 0 for those that do not exist.
func twoBefore32(rows []byte, i int) (before, last uint32) {
	if i < 2 {
		return 0, 0
	}
	return binary.LittleEndian.Uint32(rows[4*i-8:]), binary.LittleEndian.Uint32(rows[4*i-4:])
}

// divide64 is divide32 for values of 8 bytes.
func divide64(planes, rows []byte, n int) {
	divideSome64(planes, rows, n, 0, min(n, eight))
	divideSome64(planes, rows, n, divideEights64(planes, rows, n), n)
}

func divideSome64(planes, rows []byte, n, from, to int) {
	before, last := twoBefore64(rows, from)
	for i := from; i < to; i++ {
		v := binary.LittleEndian.Uint64(rows[8*i:])
		d := v - (2*last - before)
		before, last = last, v
		d = d<<1 ^ uint64(int64(d)>>63)
		for k := range 8 {
			planes[k*n+i] = byte(d >> (8 * k))
		}
	}
}

// join64 is the inverse of divide64.
func join64(rows, planes []byte, n int) {
	done := joinEights64(rows, planes, n)
	before, last := twoBefore64(rows, done)
	for i := done; i < n; i++ {
		var d uint64
		for k := range 8 {
			d |= uint64(planes[k*n+i]) << (8 * k)
		}
		v := 2*last - before + (d>>1 ^ -(d & 1))
		before, last = last, v
		binary.LittleEndian.PutUint64(rows[8*i:], v)
	}
}

func twoBefore64(rows []byte, i int) (before, last uint64) {
	if i < 2 {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(rows[8*i-16:]), binary.LittleEndian.Uint64(rows[8*i-8:])
}
