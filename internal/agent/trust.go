package agent

import (
	"fmt"
	"net"
	"os/user"

	"jacobi/internal/wire"
)

// openTo says who may use an agent at the server of conn, if that is more than the processes of its machine and those
// who share a secret; else it says nothing.
func openTo(conn *wire.Conn) string {
	host, _, err := net.SplitHostPort(conn.Raw().ConnectedAddr())
	if ip := net.ParseIP(host); conn.Sealed() || err == nil && ip != nil && ip.IsLoopback() {
		return ""
	}
	as := "the user of this agent"
	if u, err := user.Current(); err == nil {
		as = "user " + u.Username
	}
	return fmt.Sprintf("whoever may publish on %s.> at %s can start ranks here, which read and write files as %s; "+
		"nats.secret_file limits that to those who have the secret", prefix, conn.Server(), as)
}
