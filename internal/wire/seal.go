package wire

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	"jacobi/configs"
)

// leastSecret is the fewest bytes of a secret that is worth the name.
const leastSecret = 16

// seal makes a message unreadable and unforgeable for those who do not have the secret of the run: AES-256-GCM with a
// random nonce. A message is bound to its subject and to the subject of its answer, so that it cannot be played back
// elsewhere.
type seal struct {
	aead cipher.AEAD
	key  []byte
}

// newSeal returns the seal of a run, nil if there is no secret or no run. The version in the key's name sets programs
// with another seal apart.
func newSeal(secretFile, runID string) (*seal, error) {
	if secretFile == "" || runID == "" {
		return nil, nil
	}
	secret, err := configs.Contents(secretFile)
	if err != nil {
		return nil, fmt.Errorf("nats.secret_file: %w", err)
	}
	if secret = bytes.TrimSpace(secret); len(secret) < leastSecret {
		return nil, fmt.Errorf("nats.secret_file: a secret of %d bytes, at least %d are wanted", len(secret),
			leastSecret)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "jacobi seal 1, run "+runID, 32)
	if err != nil {
		return nil, err
	}
	return sealWith(key)
}

func sealWith(key []byte) (*seal, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &seal{aead, key}, err
}

// envelope is what a message is bound to; a subject holds no zero byte.
func envelope(subject, reply string) []byte { return []byte(subject + "\x00" + reply) }

// close appends the sealed message to dst.
func (s *seal) close(dst []byte, subject, reply string, data []byte) []byte {
	return s.aead.Seal(dst, nil, data, envelope(subject, reply))
}

var errSeal = errors.New("not sealed with this run's secret")

// open returns the message, which takes the place of the sealed one.
func (s *seal) open(subject, reply string, sealed []byte) ([]byte, error) {
	data, err := s.aead.Open(sealed[:0], nil, sealed, envelope(subject, reply))
	if err != nil {
		return nil, errSeal
	}
	return data, nil
}
