package halo

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// TransportDirect is the name of the transport over TCP between two ranks.
const TransportDirect = "direct"

// DirectOptions tune links over TCP.
type DirectOptions struct {
	Listen ListenAt
	// Encrypt makes all that the sockets carry go through TLS 1.3. Both ends must have the same value.
	Encrypt bool
	// Trusted leaves out checksums: the network between the two ranks is the memory of one machine.
	Trusted bool
	Key     []byte      // a secret of the run, to which the link's own is bound; nil for none
	NATS    NATSOptions // for what the sockets lose, and while there are none; Dial is not used
	// DialTimeout bounds the making of the connections; default DefaultDialTimeout
	DialTimeout time.Duration
	Streams     int // sockets; default: one, and several for large exchanges
}

// DefaultDialTimeout is the default of DirectOptions.DialTimeout.
const DefaultDialTimeout = 3 * time.Second

// Direct is the Peer for ranks that reach each other over TCP. The first end listens and offers its addresses, a key
// made for this link and, if the link is encrypted, the certificate made for it. The second end connects. Each end
// proves that it has the key before the other one reads or writes anything else.
//
// If a socket breaks, the ends ask for the rows that it has lost and send them over NATS, as FramedLink says. While
// there is no socket, all frames go over NATS, and the second end tries to connect again.
type Direct struct{ Options DirectOptions }

// directOffer is what the first end tells the second one, over NATS.
type directOffer struct {
	End         End      `json:"end"` // of the first end
	Addresses   []string `json:"addresses"`
	Key         []byte   `json:"key"`
	Certificate []byte   `json:"certificate,omitempty"` // in DER; none: not encrypted
	Streams     int      `json:"streams"`
	Trusted     bool     `json:"trusted"`
}

// plainRows and sealedRows are the sizes of rows from which one core does not fill the wire, without and with TLS, so
// that a second socket pays. From twice the size on, four pay.
const (
	plainRows  = 512 << 10
	sealedRows = 128 << 10
)

// Name returns TransportDirect.
func (Direct) Name() string { return TransportDirect }

// Reachable reports that an attempt is worth it: only a connection tells.
func (d Direct) Reachable(neighbour Member) (bool, string) {
	how := "TCP"
	if d.Options.Encrypt {
		how = "TCP with TLS 1.3"
	}
	if neighbour.Why != "" {
		how = neighbour.Why + ", " + how
	}
	return true, how
}

// Offer listens for the neighbour's connections.
func (d Direct) Offer(end End) (Link, json.RawMessage, error) {
	if err := end.check(); err != nil {
		return nil, nil, err
	}
	offer := directOffer{End: end, Key: make([]byte, sha256.Size), Streams: d.streams(end), Trusted: d.Options.Trusted}
	if _, err := rand.Read(offer.Key); err != nil {
		return nil, nil, err
	}
	s, err := newSockets(d.Options, &offer)
	if err != nil {
		return nil, nil, end.wrap("open", 0, TransportDirect, err)
	}
	if d.Options.Encrypt {
		if offer.Certificate, err = s.makeCertificate(); err != nil {
			return nil, nil, end.wrap("open", 0, TransportDirect, err)
		}
	}
	l, addresses, err := listen(d.Options.Listen)
	if err != nil {
		return nil, nil, end.wrap("open", 0, TransportDirect, err)
	}
	offer.Addresses = addresses
	link, err := d.open(end, s)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	s.listener = l
	s.running.Go(s.accept)
	raw, err := json.Marshal(offer)
	if err != nil {
		return nil, nil, errors.Join(err, link.Close())
	}
	return link, raw, nil
}

// Accept connects to the first end.
func (d Direct) Accept(end End, raw json.RawMessage) (Link, error) {
	var offer directOffer
	if err := json.Unmarshal(raw, &offer); err != nil {
		return nil, fmt.Errorf("halo: offer of a direct link: %w", err)
	}
	if err := end.check(); err != nil {
		return nil, err
	}
	if err := d.agrees(end, &offer); err != nil {
		return nil, end.wrap("open", 0, TransportDirect, err)
	}
	s, err := newSockets(d.Options, &offer)
	if err != nil {
		return nil, end.wrap("open", 0, TransportDirect, err)
	}
	link, err := d.open(end, s)
	if err != nil {
		return nil, err
	}
	first, err := s.dial(s.ctx, offer.Addresses)
	if err != nil {
		return nil, errors.Join(end.wrap("open", 0, TransportDirect, err), link.Close())
	}
	s.use(first)
	s.running.Go(func() { s.redial(offer.Addresses) })
	return link, nil
}

// maxStreams bounds the sockets of a link, and maxAddresses the addresses of an offer.
const (
	maxStreams   = 16
	maxAddresses = 64
)

// agrees checks an offer against this end.
func (d Direct) agrees(end End, offer *directOffer) error {
	if err := sameLink(end, offer.End); err != nil {
		return err
	}
	if n := offer.Streams; n < 1 || n > maxStreams {
		return fmt.Errorf("%d sockets are offered, 1 to %d are allowed", n, maxStreams)
	}
	if n := len(offer.Addresses); n < 1 || n > maxAddresses {
		return fmt.Errorf("%d addresses are offered, 1 to %d are allowed", n, maxAddresses)
	}
	if err := mismatch("bytes of the link's key", len(offer.Key), sha256.Size); err != nil {
		return err
	}
	if err := mismatch("trusted network", offer.Trusted, d.Options.Trusted); err != nil {
		return err
	}
	return mismatch("encryption", len(offer.Certificate) > 0, d.Options.Encrypt)
}

// streams returns the number of sockets.
func (d Direct) streams(end End) int {
	large := plainRows
	if d.Options.Encrypt {
		large = sealedRows
	}
	switch size := max(end.SendBytes(), end.RecvBytes()); {
	case d.Options.Streams > 0:
		return d.Options.Streams
	case size >= 2*large:
		return 4
	case size >= large:
		return 2
	}
	return 1
}

// open opens the link whose frames go through s.
func (d Direct) open(end End, s *sockets) (*FramedLink, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.Options.NATS.Timeout)
	defer cancel()
	return openLink(ctx, end, d.Options.NATS, s)
}

// linkKey returns the key of a link from the one that was offered and the run's.
func linkKey(offered, run []byte, end End) ([]byte, error) {
	if end.Rank > end.Neighbour {
		end = end.Facing()
	}
	info := fmt.Sprintf("jacobi direct 1, run %v, rank %d %v, rank %d", end.Run, end.Rank, end.Side, end.Neighbour)
	return hkdf.Key(sha256.New, offered, run, info, sha256.Size)
}

// ListenAt says where the first end of a link over TCP listens.
type ListenAt struct {
	Where  string // an address, a network such as 10.1.0.0/16, or the name of an interface; "": all interfaces
	Lo, Hi int    // ports; both 0: any
}

// listen returns a listener, and the addresses under which others may reach it.
func listen(at ListenAt) (net.Listener, []string, error) {
	hosts, err := at.hosts()
	if err != nil {
		return nil, nil, err
	}
	host := "" // all interfaces
	if len(hosts) == 1 && at.Where != "" {
		host = hosts[0].String()
	}
	l, err := at.port(host)
	if err != nil {
		return nil, nil, err
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	var addresses []string
	for _, h := range hosts[:min(len(hosts), maxAddresses)] {
		addresses = append(addresses, netip.AddrPortFrom(h, port).String())
	}
	return l, addresses, nil
}

// port listens on a free port of the range, beginning anywhere so that ranks of one host seldom meet.
func (at ListenAt) port(host string) (net.Listener, error) {
	n := at.Hi - at.Lo + 1
	first := mathrand.IntN(n)
	var err error
	for i := range n {
		port := at.Lo + (first+i)%n
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	if n > 1 {
		err = fmt.Errorf("no free port from %d to %d: %w", at.Lo, at.Hi, err)
	}
	return nil, err
}

// hosts returns the addresses of this machine that at names. Loopback addresses are the last resort.
func (at ListenAt) hosts() ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(at.Where); err == nil {
		return []netip.Addr{a}, nil
	}
	network, errNet := netip.ParsePrefix(at.Where)
	addrs, err := interfaceAddrs(at.Where, errNet == nil)
	if err != nil {
		return nil, err
	}
	var own, loopback []netip.Addr
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		ip = ip.Unmap()
		switch {
		case errNet == nil && !network.Contains(ip):
		case ip.IsLoopback():
			loopback = append(loopback, ip)
		case ip.IsGlobalUnicast():
			own = append(own, ip)
		}
	}
	if len(own) == 0 {
		own = loopback
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("no address of this machine is in %s", at.Where)
	}
	return own, nil
}

func interfaceAddrs(where string, isNetwork bool) ([]net.Addr, error) {
	if where == "" || isNetwork {
		return net.InterfaceAddrs()
	}
	i, err := net.InterfaceByName(where)
	if err != nil {
		return nil, fmt.Errorf("%s is no address, no network and no interface of this machine: %w", where, err)
	}
	return i.Addrs()
}

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
