package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Frame is a message between the two ends of a Stream: a chunk of one of the user's messages, an acknowledgement, or a
// goodbye. It is encoded, little-endian, as magic u32, kind u8, last u8, length of label u8, zero u8, seq u64, taken
// u64, held u64, total u64, label, data, then u32, the CRC-32C of all bytes before it.
type Frame struct {
	kind  frameKind
	last  bool // the last chunk of a message
	label string
	seq   uint64 // numbers the chunks: 1, 2, ...; 0 in other frames
	taken uint64 // the sender's Recv has taken the chunks up to this one
	held  uint64 // the sender has the chunks up to this one
	total uint64 // bytes of the chunk's message
	data  []byte // of a chunk; the reason of a goodbye
}

type frameKind byte

const (
	frameChunk frameKind = iota
	frameAck
	frameAsk // wants a frameAck
	frameBye
	frameKinds
)

const (
	frameMagic = 0x5453424a // "JBST"
	frameHead  = 4 + 4 + 4*8
	frameTail  = 4
	takenAt    = 16 // offset of taken and held in an encoded frame

	// chunkBytes is the maximum size of a chunk. NATS has its best throughput near it.
	chunkBytes = 256 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func (f *Frame) encode() []byte {
	b := make([]byte, 0, frameHead+len(f.label)+len(f.data)+frameTail)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	last := byte(0)
	if f.last {
		last = 1
	}
	b = append(b, byte(f.kind), last, byte(len(f.label)), 0)
	b = binary.LittleEndian.AppendUint64(b, f.seq)
	b = binary.LittleEndian.AppendUint64(b, f.taken)
	b = binary.LittleEndian.AppendUint64(b, f.held)
	b = binary.LittleEndian.AppendUint64(b, f.total)
	b = append(b, f.label...)
	b = append(b, f.data...)
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// refresh sets the acknowledgement in b, an encoded frame.
func refresh(b []byte, taken, held uint64) {
	binary.LittleEndian.PutUint64(b[takenAt:], taken)
	binary.LittleEndian.PutUint64(b[takenAt+8:], held)
	body := b[:len(b)-frameTail]
	binary.LittleEndian.PutUint32(b[len(body):], checksum(body))
}

// ParseFrame decodes b. The Frame shares b's memory. The error says why b is no frame, or that it is damaged.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < frameHead+frameTail || binary.LittleEndian.Uint32(b) != frameMagic {
		return Frame{}, errors.New("not a frame of a stream")
	}
	body := b[:len(b)-frameTail]
	want := binary.LittleEndian.Uint32(b[len(body):])
	if got := checksum(body); got != want {
		return Frame{}, fmt.Errorf("checksum %08x, the frame says %08x", got, want)
	}
	kind, last, label := frameKind(b[4]), b[5], int(b[6])
	if kind >= frameKinds || last > 1 || b[7] != 0 || len(body) < frameHead+label {
		return Frame{}, errors.New("bad head of a frame")
	}
	f := Frame{
		kind:  kind,
		last:  last == 1,
		label: string(body[frameHead : frameHead+label]),
		seq:   binary.LittleEndian.Uint64(b[8:]),
		taken: binary.LittleEndian.Uint64(b[takenAt:]),
		held:  binary.LittleEndian.Uint64(b[takenAt+8:]),
		total: binary.LittleEndian.Uint64(b[takenAt+16:]),
		data:  body[frameHead+label:],
	}
	if (kind == frameChunk) != (f.seq > 0) || len(f.data) > chunkBytes ||
		kind == frameChunk && uint64(len(f.data)) > f.total {
		return Frame{}, fmt.Errorf("frame %d of kind %d with %d bytes of %d", f.seq, kind, len(f.data), f.total)
	}
	return f, nil
}

// Label returns the label of the sender's end.
func (f *Frame) Label() string { return f.label }

// First reports whether the frame is the first one with data that its sender sent on the stream.
func (f *Frame) First() bool { return f.seq == 1 }

// Goodbye reports whether the sender has left.
func (f *Frame) Goodbye() bool { return f.kind == frameBye }
