package roster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// frame is one chunk of a message between two ranks or, with ack set, the acknowledgement of a chunk. It is encoded,
// little-endian, as magic u32, ack u8, length of tag u8, chunk u32, chunks u32, from u32, seq u64, total u64, tag,
// data, then u32, the CRC-32C of all bytes before it.
type frame struct {
	ack    bool
	from   int
	tag    string
	seq    uint64 // numbers the messages with this tag from this sender to this receiver: 0, 1, 2, ...
	chunk  uint32 // 0 <= chunk < chunks
	chunks uint32
	total  uint64 // bytes of the message
	data   []byte // of the chunk; none in an ack
}

const (
	frameMagic    = 0x5450424a // "JBPT"
	frameHead     = 4 + 1 + 1 + 4 + 4 + 4 + 8 + 8
	frameOverhead = frameHead + maxTag + 4
	maxTag        = 255
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (f frame) encode() []byte {
	b := make([]byte, 0, frameHead+len(f.tag)+len(f.data)+4)
	b = binary.LittleEndian.AppendUint32(b, frameMagic)
	kind := byte(0)
	if f.ack {
		kind = 1
	}
	b = append(b, kind, byte(len(f.tag)))
	b = binary.LittleEndian.AppendUint32(b, f.chunk)
	b = binary.LittleEndian.AppendUint32(b, f.chunks)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.from))
	b = binary.LittleEndian.AppendUint64(b, f.seq)
	b = binary.LittleEndian.AppendUint64(b, f.total)
	b = append(b, f.tag...)
	b = append(b, f.data...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeFrame decodes b. The frame's data shares b's memory.
func decodeFrame(b []byte) (frame, error) {
	if len(b) < frameHead+4 || binary.LittleEndian.Uint32(b) != frameMagic {
		return frame{}, errors.New("not a frame")
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return frame{}, fmt.Errorf("checksum %08x, the frame says %08x", got, sum)
	}
	tag := int(b[5])
	if b[4] > 1 || len(body) < frameHead+tag {
		return frame{}, errors.New("bad head")
	}
	f := frame{
		ack:    b[4] == 1,
		chunk:  binary.LittleEndian.Uint32(b[6:]),
		chunks: binary.LittleEndian.Uint32(b[10:]),
		from:   int(binary.LittleEndian.Uint32(b[14:])),
		seq:    binary.LittleEndian.Uint64(b[18:]),
		total:  binary.LittleEndian.Uint64(b[26:]),
		tag:    string(body[frameHead : frameHead+tag]),
		data:   body[frameHead+tag:],
	}
	if f.chunk >= f.chunks || f.total > MaxMessage || uint64(len(f.data)) > f.total {
		return frame{}, fmt.Errorf("chunk %d of %d, %d bytes of %d", f.chunk, f.chunks, len(f.data), f.total)
	}
	return f, nil
}
