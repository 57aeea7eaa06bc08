package halo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"jacobi/solver"
)

// packer makes rows smaller, without loss. In a smooth field the bits of a value, taken as an integer, differ little
// from a straight line through the two values before it. What they differ by, with the sign in the lowest bit, is
// divided into planes: first the lowest byte of all values, last the highest. The high planes are then mostly 0, and
// s2 codes them with few bytes. A packer serves one goroutine.
type packer struct{ planes []byte }

// pack appends the packed rows to dst. Their length need not be a multiple of a value's.
func (p *packer) pack(dst, rows []byte, dtype solver.DType) []byte {
	planes := p.room(len(rows))
	n := len(rows) / dtype.Size()
	copy(planes[n*dtype.Size():], rows[n*dtype.Size():])
	if dtype == solver.Float32 {
		divide32(planes, rows, n)
	} else {
		divide64(planes, rows, n)
	}
	at, most := len(dst), s2.MaxEncodedLen(len(rows))
	if cap(dst)-at < most {
		dst = append(make([]byte, 0, at+most), dst...)
	}
	return dst[:at+len(s2.Encode(dst[at:at+most], planes))]
}

// unpack fills rows from packed, which pack has made of rows of the same length. It returns an error if packed is
// broken or says another length, and reserves no memory for that.
func (p *packer) unpack(rows, packed []byte, dtype solver.DType) error {
	length, err := s2.DecodedLen(packed)
	if err != nil {
		return fmt.Errorf("packed rows: %w", err)
	}
	if err := mismatch("bytes of packed rows", length, len(rows)); err != nil {
		return err
	}
	planes, err := s2.Decode(p.room(len(rows)), packed)
	if err == nil && len(planes) != len(rows) {
		err = errors.New("decoded to another length")
	}
	if err != nil {
		return fmt.Errorf("packed rows: %w", err)
	}
	n := len(rows) / dtype.Size()
	copy(rows[n*dtype.Size():], planes[n*dtype.Size():])
	if dtype == solver.Float32 {
		join32(rows, planes, n)
	} else {
		join64(rows, planes, n)
	}
	return nil
}

// room returns the memory for n bytes of planes.
func (p *packer) room(n int) []byte {
	if cap(p.planes) < n {
		p.planes = make([]byte, n)
	}
	return p.planes[:n]
}

// divide32 writes the planes of the first n values of rows. It wraps on overflow, as join32 does.
func divide32(planes, rows []byte, n int) {
	p0, p1, p2, p3 := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
	var before, last uint32
	for i := range n {
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
	var before, last uint32
	for i := range n {
		d := uint32(p0[i]) | uint32(p1[i])<<8 | uint32(p2[i])<<16 | uint32(p3[i])<<24
		v := 2*last - before + (d>>1 ^ -(d & 1))
		before, last = last, v
		binary.LittleEndian.PutUint32(rows[4*i:], v)
	}
}

// divide64 is divide32 for values of 8 bytes.
func divide64(planes, rows []byte, n int) {
	var before, last uint64
	for i := range n {
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
	var before, last uint64
	for i := range n {
		var d uint64
		for k := range 8 {
			d |= uint64(planes[k*n+i]) << (8 * k)
		}
		v := 2*last - before + (d>>1 ^ -(d & 1))
		before, last = last, v
		binary.LittleEndian.PutUint64(rows[8*i:], v)
	}
}
