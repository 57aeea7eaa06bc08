package wire

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"jacobi/configs"
)

// identify returns the options for this client's identity and for the servers it trusts. Files are read at every
// connection, so that they may be renewed during a run, but they are checked at once.
func identify(n configs.NATS) ([]nats.Option, error) {
	var opts []nats.Option
	if n.User != "" {
		password := func() (string, error) {
			b, err := configs.Contents(n.PasswordFile)
			return string(bytes.TrimRight(b, "\r\n")), err
		}
		if _, err := password(); err != nil {
			return nil, fmt.Errorf("nats.password_file: %w", err)
		}
		opts = append(opts, nats.UserInfoHandler(func() (string, string) {
			p, _ := password() // on an error the password is empty, and the server refuses it
			return n.User, p
		}))
	}
	if n.Creds != "" {
		if _, err := userOf(n.Creds); err != nil {
			return nil, fmt.Errorf("nats.creds: %w", err)
		}
		opts = append(opts, nats.UserJWT(
			func() (string, error) { return userOf(n.Creds) },
			func(nonce []byte) ([]byte, error) { return sign(n.Creds, nonce, nkeys.ParseDecoratedUserNKey) }))
	}
	if n.NKey != "" {
		key, err := keyOf(n.NKey, seedKey)
		if err != nil {
			return nil, fmt.Errorf("nats.nkey: %w", err)
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("nats.nkey: %w", err)
		}
		opts = append(opts, nats.Nkey(public,
			func(nonce []byte) ([]byte, error) { return sign(n.NKey, nonce, seedKey) }))
	}
	return append(opts, trust(n)...), nil
}

func userOf(creds string) (string, error) {
	b, err := configs.Contents(creds)
	if err != nil {
		return "", err
	}
	if _, err := nkeys.ParseDecoratedUserNKey(b); err != nil {
		return "", fmt.Errorf("no credentials of a user: %w", err)
	}
	return nkeys.ParseDecoratedJWT(b)
}

func seedKey(b []byte) (nkeys.KeyPair, error) { return nkeys.FromSeed(bytes.TrimSpace(b)) }

func keyOf(value string, parse func([]byte) (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
	b, err := configs.Contents(value)
	if err != nil {
		return nil, err
	}
	key, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("no seed of a user: %w", err)
	}
	return key, nil
}

func sign(value string, nonce []byte, parse func([]byte) (nkeys.KeyPair, error)) ([]byte, error) {
	key, err := keyOf(value, parse)
	if err != nil {
		return nil, err
	}
	defer key.Wipe()
	return key.Sign(nonce)
}

// trust returns the options for TLS. With nats.ca or nats.cert a server without TLS is refused.
func trust(n configs.NATS) (opts []nats.Option) {
	authorities := func() (*x509.CertPool, error) {
		if n.CA == "" {
			return x509.SystemCertPool()
		}
		b, err := configs.Contents(n.CA)
		if err != nil {
			return nil, fmt.Errorf("nats.ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("nats.ca %s: no certificate in PEM", n.Public().CA)
		}
		return pool, nil
	}
	own := func() (tls.Certificate, error) {
		cert, err := configs.Contents(n.Cert)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("nats.cert: %w", err)
		}
		key, err := configs.Contents(n.Key)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("nats.key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return pair, fmt.Errorf("nats.cert and nats.key: %w", err)
		}
		return pair, nil
	}
	if n.CA != "" {
		opts = append(opts, nats.ClientTLSConfig(nil, authorities))
	}
	if n.Cert != "" {
		opts = append(opts, nats.ClientTLSConfig(own, authorities))
	}
	return opts
}

// explain adds to an error of the server at n what the user can do about it.
func explain(n configs.NATS, err error) error {
	if expired, ok := errors.AsType[x509.CertificateInvalidError](err); ok && expired.Reason == x509.Expired {
		return fmt.Errorf("%w: renew the server's certificate, or set the clock of this machine", err)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: nats.ca names the authority to trust", err)
	}
	if errors.Is(err, nats.ErrSecureConnWanted) {
		return fmt.Errorf("%w: nats.ca or nats.cert is given, and the server has no TLS", err)
	}
	// The client does not wrap the errors that a server reports while it connects, so they are told by their text.
	if strings.Contains(strings.ToLower(err.Error()), nats.AUTHORIZATION_ERR) {
		return fmt.Errorf("%w: %s", err, unknown)
	}
	overTLS := errors.Is(err, nats.ErrTLS)
	// A server without free connections says so before TLS.
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	// crypto/tls does not export the type of an alert.
	case n.Cert == "" && strings.Contains(err.Error(), "tls: certificate required"):
		return fmt.Errorf("%w: %s", err, wantsCertificate)
	case ended(err) && overTLS && n.Cert == "":
		return fmt.Errorf("%w: %s; or %s", err, wantsCertificate, full)
	case ended(err) && overTLS:
		return fmt.Errorf("%w: the server may not trust the certificate in nats.cert; or %s", err, full)
	case plain, ended(err), strings.Contains(err.Error(), "connections exceeded"):
		return fmt.Errorf("%w: %s", err, full)
	}
	return err
}

const (
	unknown = "the server does not know this user, or wants another password or key " +
		"(nats.user and nats.password_file, nats.creds, nats.nkey, or nats.url)"
	wantsCertificate = "the server may want a certificate of its clients: nats.cert and nats.key"
	full             = "the server, or its limit for this account, may have no connection left (max_connections); a " +
		"rank has one, and up to four more for each neighbour over NATS"
)

// ended reports whether the server closed a connection that was in order on this side. Its reason may come too late to
// be read: it has no connection left or, in TLS 1.3, it wants another certificate, which it checks only after the
// handshake.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

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
