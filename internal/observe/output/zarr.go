package output

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
	"strings"

	"jacobi/solver"
)

// Zarr is the ending of the names of Zarr groups.
const Zarr = ".zarr"

// isZarr reports whether the field of this name is a Zarr group.
func isZarr(name string) bool { return strings.EqualFold(filepath.Ext(name), Zarr) }

const (
	// shardHead is the length of the head of a shard. It holds every Shard, and aligns the rows to pages.
	shardHead = 4096
	// shardChunk is about the size of a chunk: large enough for a disk, small enough to read a part of a field.
	shardChunk = 4 << 20
)

// Shard describes the file of the values of a Zarr array: one shard for the whole array, whose chunks, of whole rows,
// follow each other (Zarr's specification, version 3, codec sharding_indexed). The rows of a field are therefore dense
// in one file, to which all ranks write. The format lets other bytes stand before the chunks. This one has the Shard
// there, as JSON, so that whoever puts the file in place can write the metadata of the group around it.
type Shard struct {
	NX    int     `json:"nx"`
	NY    int     `json:"ny"`
	DType string  `json:"dtype"`
	HX    float64 `json:"hx"` // spacings
	HY    float64 `json:"hy"`
	Rows  int     `json:"rows"` // of a chunk
}

// maskType is Zarr's name of the type of truth values.
const maskType = "bool"

// newShard returns the shard of a field. Its chunks depend on the mesh alone.
func newShard(m solver.Mesh, hx, hy float64) Shard {
	bytes := float64(m.NY) * float64(m.NX) * float64(m.DType.Size())
	chunks := max(1, min(m.NY, int(math.Ceil(bytes/shardChunk))))
	dtype := m.DType.String()
	if m.DType == Mask {
		dtype = maskType
	}
	return Shard{NX: m.NX, NY: m.NY, DType: dtype, HX: hx, HY: hy, Rows: (m.NY + chunks - 1) / chunks}
}

// chunks returns the number of chunks. The last one may have rows beyond the array.
func (s Shard) chunks() int { return (s.NY + s.Rows - 1) / s.Rows }

// Mesh returns the mesh of the values, without walls.
func (s Shard) Mesh() (solver.Mesh, error) {
	m := solver.Mesh{NX: s.NX, NY: s.NY}
	for _, d := range []solver.DType{solver.Float32, solver.Float64} {
		if s.DType == d.String() {
			m.DType = d
			return m, nil
		}
	}
	return m, fmt.Errorf("type %q; float32 and float64 are known", s.DType)
}

// zarrFormat returns the format of the shard of a field.
func zarrFormat(m solver.Mesh, hx, hy float64) Format {
	s := newShard(m, hx, hy)
	head, _ := json.Marshal(s) // numbers and a plain text
	head = append(head, bytes.Repeat([]byte{' '}, shardHead-1-len(head))...)
	chunk := s.Rows * m.RowBytes()
	tail := make([]byte, (s.chunks()*s.Rows-m.NY)*m.RowBytes(), (s.chunks()*s.Rows-m.NY)*m.RowBytes()+16*s.chunks()+4)
	padding := len(tail)
	for c := range s.chunks() {
		tail = binary.LittleEndian.AppendUint64(tail, shardHead+uint64(c)*uint64(chunk))
		tail = binary.LittleEndian.AppendUint64(tail, uint64(chunk))
	}
	sum := crc32.Checksum(tail[padding:], crc32.MakeTable(crc32.Castagnoli))
	return Format{Head: append(head, '\n'), Tail: binary.LittleEndian.AppendUint32(tail, sum),
		From: m.DType, DType: m.DType}
}

// ReadShard reads the Shard from the file of a Zarr array that this package has written. data is the offset of row 0.
func ReadShard(f io.ReaderAt) (s Shard, data int64, err error) {
	head := make([]byte, shardHead)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return s, 0, err
	}
	if err := json.Unmarshal(bytes.TrimRight(head, "\x00"), &s); err != nil || s.NX < 1 || s.NY < 1 || s.Rows < 1 {
		return s, 0, errors.New("not the values of a Zarr array as the launcher writes them")
	}
	return s, shardHead, nil
}
