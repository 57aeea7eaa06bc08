package output

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"

	"jacobi/solver"
)

// HashRows continues the SHA-256 of a field's interior rows [1, NY-1), in order, each NX values little-endian,
// with the rows of stripe s, and returns the new state. The rank with the first stripe begins with a nil state;
// each rank hands the state on to the next one.
func HashRows(ctx context.Context, state []byte, rows Rows, s solver.Stripe, m solver.Mesh) ([]byte, error) {
	h := sha256.New()
	if state != nil {
		if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			return nil, fmt.Errorf("hash rows %v: state of the rows before: %w", s, err)
		}
	}
	err := eachChunk(ctx, m, s, rows, func(_ int, rows []byte) error {
		_, err := h.Write(rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("hash rows %v: %w", s, err)
	}
	return h.(encoding.BinaryMarshaler).MarshalBinary()
}

// Sum returns the hash of a state in hexadecimal digits.
func Sum(state []byte) (string, error) {
	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		return "", fmt.Errorf("hash: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
