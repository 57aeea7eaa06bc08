package halo

import (
	"fmt"
	"io"
	"net"
	"time"
)

// pieceSize is how much is read at a time: each piece is a sign of progress.
const pieceSize = 256 << 10

// reception is the memory of a goroutine that receives packed parts.
type reception struct {
	packer packer
	packed []byte
}

// read reads frames from a connection until it breaks.
func (n *session) read(conn net.Conn) error {
	header, in := make([]byte, headerSize), new(reception)
	for {
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, header); err != nil {
			return fmt.Errorf("read a frame: %w", err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(n.link.opts.Timeout)); err != nil {
			return err
		}
		if err := n.readFrame(conn, header, in); err != nil {
			return err
		}
	}
}

// readFrame reads the rows of the frame with header into the memory of their exchange.
func (n *session) readFrame(conn net.Conn, header []byte, in *reception) error {
	l := n.link
	f, length, err := n.check(header)
	if err != nil {
		l.refuse(err)
		return err
	}
	if err := l.end.agrees(&f); err != nil {
		l.in.fail(err)
		return err
	}
	size, err := partLength(&f, int(length))
	if err != nil {
		l.refuse(err)
		return err
	}
	dst, err := l.in.claim(&f, size)
	if err != nil {
		l.refuse(err)
		return err
	}
	n.owner.strikes.Store(0)
	if dst == nil { // it came over NATS
		_, err := io.CopyN(io.Discard, conn, int64(length))
		return err
	}
	payload := dst
	if f.kind == kindPacked {
		payload = in.room(int(length))
	}
	err = n.readRows(conn, payload)
	came := l.opts.now()
	if err == nil {
		if err = n.place(&f, header, payload, dst, in); err != nil {
			l.refuse(err)
		}
	}
	l.in.settle(&f, err == nil, came)
	return err
}

// check decodes header and returns an error unless a frame with rows may follow.
func (n *session) check(header []byte) (f frame, length uint32, err error) {
	f, length, err = parseHeader(header)
	if err == nil && !n.owner.checksums() {
		err = checkFrame(header, nil)
	}
	if err == nil {
		err = n.link.end.addressed(&f)
	}
	if err == nil && f.kind != kindPacked {
		err = mismatch("frame kind", f.kind, kindRows)
	}
	return f, length, err
}

// partLength returns the bytes of rows in the part of f, whose payload has length bytes. A packed part is smaller than
// its rows.
func partLength(f *frame, length int) (int, error) {
	_, size, err := partOf(f)
	switch {
	case err != nil:
		return 0, err
	case f.kind != kindPacked:
		return size, mismatch("bytes of a part", length, size)
	case length >= size:
		return 0, fmt.Errorf("%d bytes of a packed part, want less than the %d of its rows", length, size)
	}
	return size, nil
}

// place checks the payload of a frame that has been read, and unpacks it into dst unless it lies there.
func (n *session) place(f *frame, header, payload, dst []byte, in *reception) error {
	if n.owner.checksums() {
		if err := checkFrame(header, payload); err != nil {
			return err
		}
	}
	if f.kind != kindPacked {
		return nil
	}
	return in.packer.unpack(dst, payload, n.link.end.DType)
}

// room returns memory for n bytes.
func (r *reception) room(n int) []byte {
	if cap(r.packed) < n {
		r.packed = make([]byte, n)
	}
	return r.packed[:n]
}

// readRows fills dst.
func (n *session) readRows(conn net.Conn, dst []byte) error {
	for len(dst) > 0 {
		k := min(pieceSize, len(dst))
		if _, err := io.ReadFull(conn, dst[:k]); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		n.link.in.advance()
		dst = dst[k:]
	}
	return nil
}
