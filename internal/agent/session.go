package agent

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"jacobi/internal/wire"
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

// sender returns a function that publishes a stream's packets on a subject.
func sender(conn *wire.Conn, subject string) func([]byte) {
	return func(b []byte) { _ = conn.Publish(subject, b) } // a packet that fails is sent again like one that is lost
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
