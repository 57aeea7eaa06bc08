package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Port returns a port of 127.0.0.1 at which nobody listens and that no other test of this machine is given before t
// ends. So a server may start there, end and start again. It is below the ports that the kernel gives to outgoing
// connections: one of these could take it while the server is down, most easily a client that connects to it again, as
// TCP lets a socket meet itself.
func Port(t testing.TB) int {
	t.Helper()
	var last error
	for range 100 {
		port := 10000 + rand.IntN(20000)
		// An abstract name has one listener in a network namespace, as a port has, and none when its process ends.
		claim, err := net.Listen("unix", fmt.Sprintf("@jacobi-test-port-%d", port))
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			claim.Close()
			last = err
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		return port
	}
	t.Fatal(last)
	return 0
}
