package output

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"

	"jacobi/solver"
)

// Digest makes two SHA-256s of a field: that of its interior rows [1, NY-1), in order, each NX values little-endian,
// and that of its .npy file. Each rank adds its rows and hands the digest on to the rank below.
type Digest struct {
	rows, file hash.Hash
}

// digestWire is a Digest between two ranks.
type digestWire struct {
	Rows []byte `json:"rows"`
	File []byte `json:"file"`
}

// NewDigest returns the digest that another rank handed on; nil: one that no rank has added to.
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

// State returns what NewDigest reads.
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

// Begin adds what the file has before row 1.
func (d *Digest) Begin(m solver.Mesh, row0 []byte) {
	d.file.Write(npyHeader(m)) // never fails
	d.file.Write(row0)
}

// AddRows adds the rows of a rank's stripe, to the rows and, if withFile says so, to the file.
func (d *Digest) AddRows(ctx context.Context, v View, withFile bool) error {
	err := eachChunk(ctx, v.Mesh, v.Stripe, v.Rows, func(_ int, rows []byte) error {
		both := make(chan struct{})
		go func() { // beside the other one, which takes as long
			defer close(both)
			if withFile {
				d.file.Write(rows)
			}
		}()
		d.rows.Write(rows)
		<-both
		return nil
	})
	if err != nil {
		return fmt.Errorf("hash rows %v: %w", v.Stripe, err)
	}
	return nil
}

// End adds row NY-1.
func (d *Digest) End(row []byte) { d.file.Write(row) }

// Sums returns both, in hexadecimal digits.
func (d *Digest) Sums() (rows, file string) { return sumOf(d.rows), sumOf(d.file) }

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// fileOf describes a file of this contents.
func fileOf(name string, data []byte) FileReport {
	sum := sha256.Sum256(data)
	return FileReport{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}
