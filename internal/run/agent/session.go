package agent

import (
	"context"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"jacobi/internal/net/wire"
)

// A session is one launcher's use of one agent. Each end has an X25519 key pair: the launcher makes one for each
// session, the agent makes one at its start. The public keys are parts of the subjects. So only the agent that made the
// offer can read the secrets of a run, even if launcher and agent share no secret.

func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

func publicID(key *ecdh.PrivateKey) string { return hex.EncodeToString(key.PublicKey().Bytes()) }

// toAgent and toLauncher are the subjects of a session. toAgent with "*" for the launcher matches all sessions of an
// agent.
func toAgent(agent, launcher string) string { return prefix + "." + agent + "." + launcher + ".orders" }
func toLauncher(agent, launcher string) string {
	return prefix + "." + agent + "." + launcher + ".news"
}

// lastWords bounds the waits for the last acknowledgements and for the other side's goodbye.
const lastWords = 5 * time.Second

// openStream returns an end of the stream of orders and news, which are sent in JSON. A window holds at most 16 MiB.
func openStream(conn *wire.Conn, to string) *wire.Stream {
	return wire.NewStream(wire.StreamOptions{Conn: conn, Subject: to})
}

// send sends v. It waits for room in the window, but not for the other side.
func send(ctx context.Context, s *wire.Stream, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Send(ctx, data)
}

// each calls f with what the other side sends, until f returns false, something else than a T comes, or the stream or
// ctx ends.
func each[T any](ctx context.Context, s *wire.Stream, f func(T) bool) {
	for {
		data, err := s.Recv(ctx)
		if err != nil {
			return
		}
		var v T
		if json.Unmarshal(data, &v) != nil || !f(v) {
			return
		}
	}
}

// sealSession returns conn sealed with the key of the session between own and peer, the public key of the other end. A
// secret that agents and launchers share enters the key, so that a stranger can pose as neither.
func sealSession(conn *wire.Conn, own *ecdh.PrivateKey, peer, agent, launcher string) (*wire.Conn, error) {
	raw, err := hex.DecodeString(peer)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	public, err := ecdh.X25519().NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("public key: %w", err)
	}
	secret, err := own.ECDH(public)
	if err != nil {
		return nil, fmt.Errorf("agree on a key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, append(secret, conn.Shared()...), nil, "jacobi node 1 "+agent+" "+launcher, 32)
	if err != nil {
		return nil, err
	}
	return conn.Between(key)
}
