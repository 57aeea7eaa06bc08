package halo

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateName is the name in the certificate of a link.
const certificateName = "jacobi-link"

// makeCertificate makes the certificate of the first end and returns it for the offer. It lives as long as the link,
// and is valid whatever the clocks say.
func (s *sockets) makeCertificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{certificateName}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	s.tls = tlsConfig()
	s.tls.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return der, nil
}

// trustCertificate makes the second end accept no other certificate than the one that was offered.
func (s *sockets) trustCertificate(der []byte) error {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("certificate of the offer: %w", err)
	}
	s.tls = tlsConfig()
	s.tls.ServerName = certificateName
	s.tls.RootCAs = x509.NewCertPool()
	s.tls.RootCAs.AddCert(cert)
	return nil
}

func tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true}
}

// exporterOf returns a value that only the two ends of a TLS connection have, after the handshake; nil without TLS.
func exporterOf(conn net.Conn) ([]byte, error) {
	c, ok := conn.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	if err := c.Handshake(); err != nil { // ends with the deadline of conn
		return nil, fmt.Errorf("TLS: %w", err)
	}
	state := c.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
}
