package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"jacobi/solver"
)

// A part is a header and a payload: dense rows of the mesh, boundary columns included, of one array or several, or the
// norms of sweeps as float64. Numbers are little-endian.
//
//	 0 magic   u32 "JCKP"      16 sweeps  u64  done before the checkpoint
//	 4 version u8              24 lo      u64  first row; 0 for norms
//	 5 kind    u8              32 hi      u64  row after the last one; how many norms
//	 6 dtype   u8              40 length  u64  bytes of the payload
//	 7 zero                    48 zero
//	 8 nx      u32             60 crc     u32  CRC-32C of the bytes before it
//	12 ny      u32
const (
	headerSize  = 64
	headerCRC   = 60
	partMagic   = 0x504b434a
	partVersion = 1
	normBytes   = 8

	kindRows  = 1
	kindNorms = 2
)

// header is a decoded part header.
type header struct {
	kind           uint8
	dtype          solver.DType
	nx, ny         uint32
	sweeps, lo, hi uint64
	length         uint64
}

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	le := binary.LittleEndian
	le.PutUint32(b, partMagic)
	b[4], b[5], b[6] = partVersion, h.kind, byte(h.dtype)
	le.PutUint32(b[8:], h.nx)
	le.PutUint32(b[12:], h.ny)
	le.PutUint64(b[16:], h.sweeps)
	le.PutUint64(b[24:], h.lo)
	le.PutUint64(b[32:], h.hi)
	le.PutUint64(b[40:], h.length)
	le.PutUint32(b[headerCRC:], crc32.Checksum(b[:headerCRC], castagnoli))
	return b
}

// decodeHeader accepts only the output of encode.
func decodeHeader(b []byte) (header, error) {
	le := binary.LittleEndian
	if len(b) != headerSize || le.Uint32(b) != partMagic {
		return header{}, errors.New("not a part of a checkpoint")
	}
	if got, want := le.Uint32(b[headerCRC:]), crc32.Checksum(b[:headerCRC], castagnoli); got != want {
		return header{}, fmt.Errorf("header with checksum %08x, want %08x", got, want)
	}
	if b[4] != partVersion {
		return header{}, fmt.Errorf("part of version %d, want %d", b[4], partVersion)
	}
	h := header{kind: b[5], dtype: solver.DType(b[6]), nx: le.Uint32(b[8:]), ny: le.Uint32(b[12:]),
		sweeps: le.Uint64(b[16:]), lo: le.Uint64(b[24:]), hi: le.Uint64(b[32:]), length: le.Uint64(b[40:])}
	if string(h.encode()) != string(b) {
		return header{}, errors.New("header with bytes that no version writes")
	}
	return h, nil
}

// header returns the header of part p.
func (m *Manifest) header(p Part) header {
	kind := uint8(kindRows)
	if p.File == normsFile {
		kind = kindNorms
	}
	return header{kind: kind, dtype: m.Mesh.DType, nx: uint32(m.Mesh.NX), ny: uint32(m.Mesh.NY),
		sweeps: uint64(m.Sweeps),
		lo:     uint64(p.Lo), hi: uint64(p.Hi), length: uint64(p.Bytes - headerSize)}
}

// copyBytes is the size of one read or write.
const copyBytes = 1 << 20

// writePart writes the header of p and the payload to w and returns the checksum of both.
func (m *Manifest) writePart(w io.Writer, p Part, payload []byte) (string, error) {
	head := m.header(p).encode()
	crc := crc32.Checksum(head, castagnoli)
	if _, err := w.Write(head); err != nil {
		return "", err
	}
	for len(payload) > 0 {
		chunk := payload[:min(len(payload), copyBytes)]
		crc = crc32.Update(crc, castagnoli, chunk)
		if _, err := w.Write(chunk); err != nil {
			return "", err
		}
		payload = payload[len(chunk):]
	}
	return sumText(crc), nil
}

// verify reads the whole file of p and checks it against the manifest. The error does not name the file.
func (m *Manifest) verify(p Part, f File) error {
	if f.Size() != p.Bytes {
		return fmt.Errorf("%d bytes, want %d", f.Size(), p.Bytes)
	}
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	h, err := decodeHeader(head)
	if err != nil {
		return err
	}
	if want := m.header(p); h != want {
		return fmt.Errorf("header %+v, want %+v", h, want)
	}
	crc := crc32.Checksum(head, castagnoli)
	buf := make([]byte, copyBytes)
	for r := io.NewSectionReader(f, headerSize, p.Bytes-headerSize); ; {
		n, err := io.ReadFull(r, buf)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if got := sumText(crc); got != p.Sum {
		return fmt.Errorf("checksum %s, want %s", got, p.Sum)
	}
	return nil
}

func encodeNorms(norms []float64) []byte {
	b := make([]byte, 0, normBytes*len(norms))
	for _, n := range norms {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return b
}

// readNorms reads the norms from a verified file.
func (m *Manifest) readNorms(f File) ([]float64, error) {
	b := make([]byte, m.Norms.Bytes-headerSize)
	if _, err := f.ReadAt(b, headerSize); err != nil {
		return nil, err
	}
	norms := make([]float64, m.Norms.Hi)
	for i := range norms {
		norms[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[normBytes*i:]))
		if math.IsNaN(norms[i]) || math.IsInf(norms[i], 0) {
			return nil, fmt.Errorf("norm %v of sweep %d", norms[i], m.norms().Sweep(i))
		}
	}
	return norms, nil
}
