package halo

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
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
