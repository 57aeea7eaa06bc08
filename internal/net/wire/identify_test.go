package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"jacobi/configs"
	"jacobi/internal/net/roster/rostertest"
)

// authority is a certificate authority for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	now := time.Now()
	cert, key := a.sign(&x509.Certificate{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "own authority"}})
	parsed, err := x509.ParseCertificate(block(t, cert))
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.key = parsed, key
	return a
}

func block(t *testing.T, text string) []byte {
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		t.Fatalf("no PEM: %q", text)
	}
	return b.Bytes
}

// sign returns a certificate in PEM, signed by a, or by itself for a's own.
func (a *authority) sign(template *x509.Certificate) (string, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key
}

// issue returns a certificate for 127.0.0.1 and its key, in PEM, valid from now+from to now+to.
func (a *authority) issue(from, to time.Duration) (cert, key string) {
	now := time.Now()
	cert, k := a.sign(&x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(to),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		Subject:     pkix.Name{CommonName: "leaf"}})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// serveTLS starts a server with the certificate.
func serveTLS(t *testing.T, cert, key string, clients *x509.CertPool) *rostertest.Server {
	t.Helper()
	return rostertest.StartWith(t, overTLS(t, cert, key, clients))
}

func overTLS(t *testing.T, cert, key string, clients *x509.CertPool) server.Options {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientCAs: clients}
	if clients != nil {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return server.Options{TLSConfig: c, TLSTimeout: 10, TLSVerify: clients != nil}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	good, goodKey := a.issue(-time.Hour, time.Hour)
	expired, expiredKey := a.issue(-48*time.Hour, -24*time.Hour)
	early, earlyKey := a.issue(24*time.Hour, 48*time.Hour)
	ca := configs.Inline(a.pem())
	tlsServer := serveTLS(t, good, goodKey, nil).URL()
	mutual := serveTLS(t, good, goodKey, clients).URL()
	for name, c := range map[string]struct {
		n    configs.NATS
		want []string // substrings of the error; nil for no error
	}{
		"own authority":           {configs.NATS{URL: tlsServer, CA: ca}, nil},
		"own authority in a file": {configs.NATS{URL: tlsServer, CA: file(t, a.pem())}, nil},
		"client certificate": {configs.NATS{URL: mutual, CA: ca, Cert: file(t, good),
			Key: configs.Inline(goodKey)}, nil},
		"no client certificate": {configs.NATS{URL: mutual, CA: ca},
			[]string{"the server may want a certificate of its clients: nats.cert and nats.key"}},
		"no authority": {configs.NATS{URL: tlsServer},
			[]string{"x509: certificate signed by unknown authority", "nats.ca names the authority to trust"}},
		"another authority": {configs.NATS{URL: tlsServer, CA: configs.Inline(other.pem())},
			[]string{"unknown authority"}},
		"expired certificate": {configs.NATS{URL: serveTLS(t, expired, expiredKey, nil).URL(), CA: ca},
			[]string{"certificate has expired or is not yet valid: current time ", " is after ",
				"renew the server's certificate, or set the clock of this machine"}},
		"a clock that is off": {configs.NATS{URL: serveTLS(t, early, earlyKey, nil).URL(), CA: ca},
			[]string{"certificate has expired or is not yet valid: current time ", " is before ",
				"set the clock of this machine"}},
		"a server without TLS": {configs.NATS{URL: rostertest.Start(t, 0).URL(), CA: ca},
			[]string{"secure connection not available", "nats.ca or nats.cert is given, and the server has no TLS"}},
		"key of another": {configs.NATS{URL: mutual, CA: ca, Cert: configs.Inline(good),
			Key: configs.Inline(expiredKey)}, []string{"nats.cert and nats.key: tls: private key does not match " +
			"public key"}},
		"no PEM": {configs.NATS{URL: tlsServer, CA: configs.Inline("hunter2")},
			[]string{"nats.ca hidden: no certificate in PEM"}},
		"no file of an authority": {configs.NATS{URL: tlsServer, CA: "/nowhere"},
			[]string{"nats.ca: open /nowhere: no such file or directory"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.n, c.want) })
	}
}

// TestFullServer checks that the error says what a server without free connections may have said: its reason may come
// too late to be read.
func TestFullServer(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(-time.Hour, time.Hour)
	ca := configs.Inline(a.pem())
	for name, c := range map[string]struct {
		server server.Options
		n      configs.NATS
	}{
		"plain": {server.Options{}, configs.NATS{}},
		"TLS":   {overTLS(t, cert, key, nil), configs.NATS{CA: ca}},
		"TLS, a certificate": {overTLS(t, cert, key, nil),
			configs.NATS{CA: ca, Cert: configs.Inline(cert), Key: configs.Inline(key)}},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.MaxConn = 1
			n := c.n
			n.URL = rostertest.StartWith(t, c.server).URL()
			first, err := Connect(t.Context(), Options{Server: n, Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			check(t, n, []string{"connect to the NATS server at " + n.URL + ": ",
				"the server, or its limit for this account, may have no connection left (max_connections); a rank " +
					"has one, and up to four more for each neighbour over NATS"})
		})
	}
}

// check connects to n and compares the error. The attempt must not take long, and the error must not hold a secret.
func check(t *testing.T, n configs.NATS, want []string) {
	t.Helper()
	start := time.Now()
	err := connect(t, Options{Server: n})
	if want == nil {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil {
		t.Fatal("connected")
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q, want %q in it", err, w)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("error %q shows the secret", err)
	}
}

func TestUsersAndSeeds(t *testing.T) {
	_, public, seed := keyPair(t, nkeys.CreateUser)
	_, _, strange := keyPair(t, nkeys.CreateUser)
	s := rostertest.StartWith(t, server.Options{Users: []*server.User{{Username: "jacobi", Password: "right"}},
		Nkeys: []*server.NkeyUser{{Nkey: public}}})
	operated, creds := operatedServer(t)
	for name, c := range map[string]struct {
		n    configs.NATS
		want []string
	}{
		"password file": {configs.NATS{URL: s.URL(), User: "jacobi", PasswordFile: file(t, "right\n")}, nil},
		"no password file": {configs.NATS{URL: s.URL(), User: "jacobi", PasswordFile: "/nowhere"},
			[]string{"nats.password_file: open /nowhere"}},
		"seed": {configs.NATS{URL: s.URL(), NKey: file(t, string(seed)+"\n")}, nil},
		"seed of another": {configs.NATS{URL: s.URL(), NKey: configs.Inline(string(strange))},
			[]string{"Authorization Violation"}},
		"no seed": {configs.NATS{URL: s.URL(), NKey: configs.Inline("hunter2")},
			[]string{"nats.nkey: no seed of a user"}},
		"credentials": {configs.NATS{URL: operated.URL(), Creds: file(t, creds)}, nil},
		"no credentials": {configs.NATS{URL: operated.URL(), Creds: configs.Inline("hunter2")},
			[]string{"nats.creds: no credentials of a user"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, c.n, c.want) })
	}
}

// keyPair returns a new key pair, its public key and its seed.
func keyPair(t *testing.T, create func() (nkeys.KeyPair, error)) (k nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	k, err := create()
	if err == nil {
		if public, err = k.PublicKey(); err == nil {
			seed, err = k.Seed()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return k, public, seed
}

// operatedServer returns a server with accounts by JWT, and the credentials of one user.
func operatedServer(t *testing.T) (*rostertest.Server, string) {
	t.Helper()
	operator, operatorID, _ := keyPair(t, nkeys.CreateOperator)
	account, accountID, _ := keyPair(t, nkeys.CreateAccount)
	_, userID, seed := keyPair(t, nkeys.CreateUser)
	accountJWT, badAccount := jwt.NewAccountClaims(accountID).Encode(operator)
	userJWT, badUser := jwt.NewUserClaims(userID).Encode(account)
	creds, badCreds := jwt.FormatUserConfig(userJWT, seed)
	accounts := &server.MemAccResolver{}
	if err := errors.Join(badAccount, badUser, badCreds, accounts.Store(accountID, accountJWT)); err != nil {
		t.Fatal(err)
	}
	s := rostertest.StartWith(t, server.Options{TrustedKeys: []string{operatorID}, AccountResolver: accounts})
	return s, string(creds)
}
