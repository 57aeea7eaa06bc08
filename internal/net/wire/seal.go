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

// minSecret is the minimum length of a secret, in bytes.
const minSecret = 16

// seal encrypts and authenticates messages with the secret of a run: AES-256-GCM with a random nonce. A message is
// bound to its subject and to the subject of its answer, so that it cannot be replayed on another subject.
type seal struct {
	aead cipher.AEAD
	key  []byte
}

// newSeal returns the seal of a run, nil if there is no secret or no run. The version in the key's label separates
// programs with another kind of seal.
func newSeal(secretFile, runID string) (*seal, error) {
	if secretFile == "" || runID == "" {
		return nil, nil
	}
	secret, err := configs.Contents(secretFile)
	if err != nil {
		return nil, fmt.Errorf("nats.secret_file: %w", err)
	}
	if secret = bytes.TrimSpace(secret); len(secret) < minSecret {
		return nil, fmt.Errorf("nats.secret_file: a secret of %d bytes; it must have at least %d", len(secret),
			minSecret)
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

// envelope returns the additional data that a message is bound to. A subject holds no zero byte, so the two are
// separate.
func envelope(subject, reply string) []byte { return []byte(subject + "\x00" + reply) }

// close appends the sealed message to dst.
func (s *seal) close(dst []byte, subject, reply string, data []byte) []byte {
	return s.aead.Seal(dst, nil, data, envelope(subject, reply))
}

var errSeal = errors.New("not sealed with this run's secret")

// open decrypts sealed in place and returns the message.
func (s *seal) open(subject, reply string, sealed []byte) ([]byte, error) {
	data, err := s.aead.Open(sealed[:0], nil, sealed, envelope(subject, reply))
	if err != nil {
		return nil, errSeal
	}
	return data, nil
}
