// Package checkpoint saves the state of a run, so that a run can resume from it with any number of ranks, any devices
// and any transport. docs/checkpoints.md describes the format and the guarantees.
package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"jacobi/configs"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// Manifest describes a checkpoint. It is written last, after all parts that it names are complete, and so makes the
// checkpoint valid.
type Manifest struct {
	Format string `json:"format"`
	// Serial numbers the checkpoints of one place 1, 2, ...; the greatest is the newest.
	Serial int `json:"serial"`
	Sweeps int `json:"sweeps"` // done before the checkpoint
	Problem
	Mesh      solver.Mesh      `json:"mesh"`
	Magnitude solver.Magnitude `json:"magnitude"`
	// Arrays is the number of arrays in a part of rows, one after the other: the field, and the direction of conjugate
	// gradients if it is 2. It is absent for 1.
	Arrays int `json:"arrays,omitempty"`
	// Aggregates is the number of cycles after which multigrid went over to aggregates; absent if it has not, and in
	// earlier versions.
	Aggregates int `json:"aggregates,omitempty"`

	RunID   string    `json:"run_id"`
	Program string    `json:"program"` // version of the program
	Created time.Time `json:"created"`
	Norms   Part      `json:"norms"` // of all sweeps before the checkpoint that have one
	// NormStride is the number of sweeps from one norm to the next, the first of which is that of sweep NormFirst; 0
	// counts as 1.
	NormStride int `json:"norm_stride,omitempty"`
	NormFirst  int `json:"norm_first,omitempty"`
	// Base is solver.Goal.Base, where that is not the first norm.
	Base  float64 `json:"base,omitempty"`
	Parts []Part  `json:"parts"` // in the order of their rows; together they are the interior
	Sum   string  `json:"sum"`   // CRC-32C of the manifest with an empty sum
}

// Problem determines the field after any number of sweeps. A run may go on from a checkpoint of the same problem.
type Problem struct {
	Fields map[string]string `json:"fields"` // configs.FieldKeys
	// Contents are those of the files that the fields name (see package problem). Checkpoints of earlier versions have
	// none.
	Contents map[string]string `json:"contents,omitempty"`
	// Areas is the version of the rules for edges of areas and fixed points; 0 without either, and in earlier versions.
	Areas int `json:"areas,omitempty"`
	// Cycles is the version of the arithmetic of multigrid; 0 without it, and in earlier versions.
	Cycles int `json:"cycles,omitempty"`
}

// cycles is raised when multigrid's fields change in their bits.
const cycles = 2

// NewProblem returns the problem of a job, whose files have the given contents. areas is the version of the rules for
// edges of areas and fixed points.
func NewProblem(c configs.Config, contents map[string]string, areas int) (Problem, error) {
	fields, err := configs.FieldKeys(c)
	p := Problem{Fields: fields, Contents: contents, Areas: areas}
	if c.Solver.Method == methods.Multigrid {
		p.Cycles = cycles
	}
	return p, err
}

// Part is one file of a checkpoint. For the norms, Lo is 0 and Hi is their number.
type Part struct {
	File  string `json:"file"`
	Lo    int    `json:"lo"` // rows [Lo, Hi)
	Hi    int    `json:"hi"`
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sum"` // CRC-32C of the whole file, 8 hexadecimal digits
}

const (
	manifestFormat = "jacobi checkpoint 1"
	// maxManifest is far above the size of any manifest, even with the largest number of ranks that a mesh allows.
	maxManifest = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumText(crc uint32) string { return fmt.Sprintf("%08x", crc) }

// partFile returns the name of a rank's part.
func partFile(rank int) string { return fmt.Sprintf("part-%05d", rank) }

const normsFile = "norms"

// Encode returns the manifest as JSON, with Format and Sum filled in.
func (m Manifest) Encode() ([]byte, error) {
	m.Format, m.Sum = manifestFormat, ""
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	m.Sum = sumText(crc32.Checksum(b, castagnoli))
	if b, err = json.MarshalIndent(m, "", " "); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return append(b, '\n'), nil
}

// DecodeManifest decodes the output of Encode. It fails if any byte differs from what Encode would write.
func DecodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > maxManifest {
		return m, fmt.Errorf("manifest of %d bytes, at most %d are allowed", len(data), maxManifest)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if m.Format != manifestFormat {
		return Manifest{}, fmt.Errorf("manifest with format %q, want %q", m.Format, manifestFormat)
	}
	same, err := m.Encode()
	if err != nil {
		return Manifest{}, err
	}
	if !bytes.Equal(same, data) {
		return Manifest{}, errors.New("manifest: its checksum or its layout is wrong: it was changed")
	}
	return m, m.check()
}

// maxSerial is more checkpoints than runs can write at one place, so that a serial never overflows.
const maxSerial = 1 << 53

// check refuses a manifest that no run could have written.
func (m *Manifest) check() error {
	l := m.Mesh
	switch {
	case l.DType != solver.Float32 && l.DType != solver.Float64, l.NX < 3, l.NY < 3, l.NX > 1<<31-1, l.NY > 1<<31-1:
		return fmt.Errorf("manifest: mesh of %d x %d %v", l.NX, l.NY, l.DType)
	case m.Sweeps < 1 || m.Serial < 1 || m.Serial > maxSerial || m.NormStride < 0 || m.NormFirst < 0:
		return fmt.Errorf("manifest: serial %d, %d sweeps, norm stride %d from sweep %d on", m.Serial, m.Sweeps,
			m.NormStride, m.NormFirst)
	case m.Arrays != 0 && m.Arrays != 2:
		return fmt.Errorf("manifest: %d arrays", m.Arrays)
	case m.Aggregates < 0 || m.Aggregates >= m.Sweeps:
		return fmt.Errorf("manifest: aggregates after %d of %d cycles", m.Aggregates, m.Sweeps)
	}
	if want := m.normsPart(); m.Norms.File != want.File || m.Norms.Lo != 0 || m.Norms.Hi != want.Hi ||
		m.Norms.Bytes != want.Bytes {
		return fmt.Errorf("manifest: norms %+v, want %+v", m.Norms, want)
	}
	next := l.Interior().Lo
	for i, p := range m.Parts {
		if p.File != partFile(i) || p.Lo != next || p.Hi <= p.Lo || p.Bytes != m.rowsBytes(p.Lo, p.Hi) {
			return fmt.Errorf("manifest: part %d is %+v, want %s from row %d on", i, p, partFile(i), next)
		}
		next = p.Hi
	}
	if next != l.Interior().Hi {
		return fmt.Errorf("manifest: the parts end at row %d, want %d", next, l.Interior().Hi)
	}
	return nil
}

// normsPart returns the part of the norms without its sum.
func (m *Manifest) normsPart() Part {
	n := m.norms().In(m.Sweeps)
	return Part{File: normsFile, Hi: n, Bytes: headerSize + normBytes*int64(n)}
}

// norms says which sweeps have a norm.
func (m *Manifest) norms() solver.Cadence {
	return solver.Cadence{First: m.NormFirst, Stride: m.NormStride}
}

// rowsBytes returns the size of a file with rows [lo, hi) of all arrays.
func (m *Manifest) rowsBytes(lo, hi int) int64 {
	return headerSize + int64(max(1, m.Arrays))*int64(hi-lo)*int64(m.Mesh.RowBytes())
}

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

// verify reads the whole file of p, which has size bytes, and checks it against the manifest. The error does not name
// the file.
func (m *Manifest) verify(p Part, f io.ReaderAt, size int64) error {
	if size != p.Bytes {
		return fmt.Errorf("%d bytes, want %d", size, p.Bytes)
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

// readNorms reads the norms from a verified file.
func (m *Manifest) readNorms(f io.ReaderAt) ([]float64, error) {
	b := make([]byte, m.Norms.Bytes-headerSize)
	if _, err := f.ReadAt(b, headerSize); err != nil {
		return nil, err
	}
	norms := make([]float64, m.Norms.Hi)
	solver.Float64.Decode(norms, b)
	for i := range norms {
		if math.IsNaN(norms[i]) || math.IsInf(norms[i], 0) {
			return nil, fmt.Errorf("norm %v of sweep %d", norms[i], m.norms().Sweep(i))
		}
	}
	return norms, nil
}
