package output

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
)

// Digest computes two SHA-256s of a field: one of its interior rows (Mesh.Interior), in order, each NX little-endian
// values, and one of its file. Each rank adds its rows and passes the digest to the rank below.
type Digest struct {
	rows, file hash.Hash
}

// digestWire is the form in which a Digest travels between ranks.
type digestWire struct {
	Rows []byte `json:"rows"`
	File []byte `json:"file"`
}

// NewDigest returns the digest with the state that another rank passed on, or an empty digest if state is nil.
func NewDigest(state []byte) (*Digest, error) {
	d := &Digest{sha256.New(), sha256.New()}
	if state == nil {
		return d, nil
	}
	var w digestWire
	err := json.Unmarshal(state, &w)
	if err == nil {
		err = d.rows.(encoding.BinaryUnmarshaler).UnmarshalBinary(w.Rows)
	}
	if err == nil {
		err = d.file.(encoding.BinaryUnmarshaler).UnmarshalBinary(w.File)
	}
	if err != nil {
		return nil, fmt.Errorf("digest of the rows before: %w", err)
	}
	return d, nil
}

// State returns the state of d for NewDigest on the next rank.
func (d *Digest) State() (state []byte, err error) {
	var w digestWire
	if w.Rows, err = d.rows.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return nil, err
	}
	if w.File, err = d.file.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// Begin adds the part of the file before the interior rows: the head and row0, which is nil if row 0 is one of them.
func (d *Digest) Begin(f Format, row0 []byte) {
	n := f.narrower()
	d.file.Write(f.Head) // never fails
	d.addToFile(&n, row0)
}

// Uses returns what adds interior rows, in order, to the hash of the rows and to that of a file of this format; nil for
// none. The two take equally long, and may go on at once.
func (d *Digest) Uses(file *Format) []Use {
	uses := []Use{func(_ int, rows []byte) error {
		d.rows.Write(rows) // never fails
		return nil
	}}
	if file != nil {
		n := file.narrower()
		uses = append(uses, func(_ int, rows []byte) error {
			d.addToFile(&n, rows)
			return nil
		})
	}
	return uses
}

// AddRows adds the rows of a rank's stripe, as Uses do.
func (d *Digest) AddRows(ctx context.Context, v View, file *Format) error {
	err := eachChunk(ctx, v.Mesh, v.Stripe, v.Rows, d.Uses(file)...)
	if err != nil {
		return fmt.Errorf("hash rows %v: %w", v.Stripe, err)
	}
	return nil
}

// End adds the part of the file after the interior rows: row NY-1, which is nil if it is one of them, and the tail.
func (d *Digest) End(f Format, row []byte) {
	n := f.narrower()
	d.addToFile(&n, row)
	if len(f.Planes) == 0 {
		d.file.Write(f.Tail)
	}
}

// AddToFile adds bytes to the hash of the file: those of further arrays in it, and its tail after them.
func (d *Digest) AddToFile(b []byte) { d.file.Write(b) }

// addToFile adds rows to the hash of the file. Its writer reports values that the file cannot hold.
func (d *Digest) addToFile(n *narrower, rows []byte) {
	rows, _ = n.rows(rows)
	d.file.Write(rows)
}

// Sums returns both hashes in hexadecimal digits.
func (d *Digest) Sums() (rows, file string) { return sumOf(d.rows), sumOf(d.file) }

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// fileOf returns the report of a file with these contents.
func fileOf(name string, data []byte) FileReport {
	sum := sha256.Sum256(data)
	return FileReport{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}
