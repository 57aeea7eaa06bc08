package halo

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"jacobi/solver"
)

// A frame is a header and a payload. Numbers are little-endian.
//
//	 0 magic    u32        32 sender   u32   rank
//	 4 version  u8         36 receiver u32   rank
//	 5 kind     u8         40 lo       u32   first row
//	 6 side     u8         44 hi       u32   row after the last one
//	 7 dtype    u8         48 nx       u32   values a row
//	 8 run      [16]byte   52 part     u32
//	24 exchange u64        56 parts    u32
//	                       60 total    u64   bytes of rows in the exchange
//	                       68 length   u32   bytes of the payload
//	                       72 crc      u32   CRC-32C of the bytes before it and of the payload
//
// The rows of an exchange, total bytes long, travel in parts: with size = ceil(total/parts), part i holds the bytes
// [i*size, min((i+1)*size, total)). The rows [lo, hi) are the most that an exchange carries.
const (
	headerSize   = 76
	crcAt        = 72
	frameMagic   = 0x4f4c484a // "JHLO"
	frameVersion = 2
	maxParts     = 1 << 16 // bounds the memory in which a receiver keeps track of parts
)

type kind uint8

const (
	kindRows kind = 1 // the payload is a part of the rows of an exchange
	// asks for the rows of an exchange; the payload is a bitmap of the parts that have arrived, empty for none
	kindAsk     kind = 2
	kindPending kind = 3 // answers kindAsk: the sender has not sent that exchange yet
	kindPacked  kind = 4 // as kindRows, and the payload is what packer.pack makes of the part
)

// String returns the kind's name.
func (k kind) String() string {
	switch k {
	case kindRows:
		return "rows"
	case kindAsk:
		return "ask"
	case kindPending:
		return "pending"
	case kindPacked:
		return "packed rows"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// frame is a decoded header.
type frame struct {
	kind     kind
	side     solver.Side // of the sender
	dtype    solver.DType
	run      RunID
	exchange solver.ExchangeNumber
	sender   uint32
	receiver uint32
	lo, hi   uint32
	nx       uint32
	part     uint32
	parts    uint32
	total    uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put writes the frame to dst, which must have room for headerSize + len(payload) bytes.
func (f *frame) put(dst, payload []byte) {
	n := headerSize + copy(dst[headerSize:], payload)
	f.encode(dst, dst[headerSize:n])
}

// encode writes the header of a frame with payload, which may lie anywhere, to dst.
func (f *frame) encode(dst, payload []byte) {
	f.header(dst, len(payload))
	binary.LittleEndian.PutUint32(dst[crcAt:], checksum(dst, payload))
}

// checksum returns the checksum of a frame.
func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:crcAt], castagnoli), castagnoli, payload)
}

func (f *frame) header(dst []byte, length int) {
	le := binary.LittleEndian
	le.PutUint32(dst, frameMagic)
	dst[4], dst[5], dst[6], dst[7] = frameVersion, byte(f.kind), byte(f.side), byte(f.dtype)
	copy(dst[8:24], f.run[:])
	le.PutUint64(dst[24:], uint64(f.exchange))
	le.PutUint32(dst[32:], f.sender)
	le.PutUint32(dst[36:], f.receiver)
	le.PutUint32(dst[40:], f.lo)
	le.PutUint32(dst[44:], f.hi)
	le.PutUint32(dst[48:], f.nx)
	le.PutUint32(dst[52:], f.part)
	le.PutUint32(dst[56:], f.parts)
	le.PutUint64(dst[60:], f.total)
	le.PutUint32(dst[68:], uint32(length))
}

// parseFrame decodes msg, which must be exactly one frame as put writes it. The payload shares msg's memory.
func parseFrame(msg []byte) (f frame, payload []byte, err error) {
	f, length, err := parseHeader(msg)
	if err != nil {
		return f, nil, err
	}
	payload = msg[headerSize:]
	if err := mismatch("frame payload length", int64(length), int64(len(payload))); err != nil {
		return f, nil, err
	}
	return f, payload, checkFrame(msg, payload)
}

// checkFrame compares the checksum in the header with that of header and payload.
func checkFrame(header, payload []byte) error {
	crc := checksum(header, payload)
	if got := binary.LittleEndian.Uint32(header[crcAt:]); got != crc {
		return fmt.Errorf("frame with checksum %#08x, want %#08x", got, crc)
	}
	return nil
}

// parseHeader decodes the header at the start of msg, without its checksum, and returns the length of the payload.
func parseHeader(msg []byte) (f frame, length uint32, err error) {
	if len(msg) < headerSize {
		return f, 0, fmt.Errorf("frame of %d bytes, want at least %d", len(msg), headerSize)
	}
	le := binary.LittleEndian
	if got := le.Uint32(msg); got != frameMagic {
		return f, 0, fmt.Errorf("frame with magic %#x, want %#x", got, uint32(frameMagic))
	}
	if err := mismatch("frame version", msg[4], frameVersion); err != nil {
		return f, 0, err
	}
	f = frame{
		kind: kind(msg[5]), side: solver.Side(msg[6]), dtype: solver.DType(msg[7]),
		run: RunID(msg[8:24]), exchange: solver.ExchangeNumber(le.Uint64(msg[24:])),
		sender: le.Uint32(msg[32:]), receiver: le.Uint32(msg[36:]),
		lo: le.Uint32(msg[40:]), hi: le.Uint32(msg[44:]), nx: le.Uint32(msg[48:]),
		part: le.Uint32(msg[52:]), parts: le.Uint32(msg[56:]), total: le.Uint64(msg[60:]),
	}
	return f, le.Uint32(msg[68:]), nil
}

// frame returns the header of a frame that this end sends.
func (e *End) frame(k kind, exchange solver.ExchangeNumber) frame {
	rows := e.Send
	if k == kindAsk {
		rows = e.Recv
	}
	return frame{kind: k, side: e.Side, dtype: e.DType, run: e.Run, exchange: exchange,
		sender: uint32(e.Rank), receiver: uint32(e.Neighbour),
		lo: uint32(rows.Lo), hi: uint32(rows.Hi), nx: uint32(e.NX), part: 0, parts: 1}
}

// addressed returns an error unless the other end of this link sent f.
func (e *End) addressed(f *frame) error {
	if f.run != e.Run {
		return &MismatchError{Field: "frame of run", Got: f.run, Want: e.Run}
	}
	if err := mismatch("frame from rank", f.sender, uint32(e.Neighbour)); err != nil {
		return err
	}
	if err := mismatch("frame to rank", f.receiver, uint32(e.Rank)); err != nil {
		return err
	}
	if f.side != e.Side.Opposite() {
		return &MismatchError{Field: "frame from side", Got: fmt.Sprint(uint8(f.side)),
			Want: fmt.Sprint(uint8(e.Side.Opposite()))}
	}
	return nil
}

// agrees returns an error unless f names the type, columns and rows that e has, and no more bytes than these rows have.
// The other end of the link must have sent f.
func (e *End) agrees(f *frame) error {
	rows := e.Recv
	if f.kind == kindAsk {
		rows = e.Send
	}
	if err := mismatch("dtype", f.dtype, e.DType); err != nil {
		return err
	}
	if err := mismatch("columns", f.nx, uint32(e.NX)); err != nil {
		return err
	}
	if err := mismatch("rows", solver.Stripe{Lo: int(f.lo), Hi: int(f.hi)}, rows); err != nil {
		return err
	}
	if most := e.bytes(rows); f.total > uint64(most) {
		return &MismatchError{Field: "bytes of an exchange", Got: f.total, Want: fmt.Sprintf("at most %d", most)}
	}
	return nil
}

// partSize returns the size in bytes of every part but the last, which may be smaller.
func partSize(total, parts int) int { return (total + parts - 1) / parts }

// partOf returns the offset and the size of the part of f in the rows of its exchange. The payload of f has length
// bytes: a packed one less than the part. An exchange without rows has one part.
func partOf(f *frame, length int) (offset, size int, err error) {
	parts, part, total := int(f.parts), int(f.part), int(f.total)
	if parts < 1 || parts > maxParts || part >= parts {
		return 0, 0, fmt.Errorf("part %d of %d, want at least 1 and at most %d", part, parts, maxParts)
	}
	size = partSize(total, parts)
	offset = part * size
	if offset >= total && part > 0 {
		return 0, 0, fmt.Errorf("part %d of %d begins at byte %d of %d", part, parts, offset, total)
	}
	size = min(size, total-offset)
	if f.kind != kindPacked {
		return offset, size, mismatch("bytes of a part", length, size)
	}
	if length >= size {
		return 0, 0, fmt.Errorf("%d bytes of a packed part, want less than the %d of its rows", length, size)
	}
	return offset, size, nil
}
