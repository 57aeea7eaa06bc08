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

// A session is one launcher's use of one agent. Each end has a key pair (X25519), made for the session by the launcher
// and at its start by the agent; their public keys are in the subjects. So the secrets of a run, which travel here, can
// be read by the agent alone that made the offer, also where launcher and agent share nothing.

func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

func publicID(key *ecdh.PrivateKey) string { return hex.EncodeToString(key.PublicKey().Bytes()) }

// toAgent and toLauncher are the subjects of a session; the first with "*" as the launcher is all sessions of an agent.
func toAgent(agent, launcher string) string { return prefix + "." + agent + "." + launcher + ".orders" }
func toLauncher(agent, launcher string) string {
	return prefix + "." + agent + "." + launcher + ".news"
}

// sender returns what posts a stream's packets on a subject.
func sender(conn *wire.Conn, subject string) func([]byte) {
	return func(b []byte) { _ = conn.Publish(subject, b) } // what the client cannot take is lost, too
}

// sealSession returns conn for the session between own and the holder of the other key, whose public id is peer. What
// agents and launchers share, if anything, is part of the key: nobody else can be an agent or a launcher then.
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
