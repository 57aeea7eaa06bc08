package agent

import (
	"fmt"
	"net"
	"os/user"

	"jacobi/internal/net/wire"
)

// openTo returns a warning that says who may use an agent at the server of conn. It returns "" if only processes of
// this machine, or holders of a shared secret, may.
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
