package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"jacobi/halo"
	"jacobi/internal/base/ballast"
	"jacobi/internal/net/natsserver"
	"jacobi/internal/net/wire"
	"jacobi/solver"
)

const (
	childArgument = "child"
	patience      = 10 * time.Second
	warmUp        = 20 // exchanges
)

// order is what a child is to do. Each has one answer.
type order struct {
	Host string // address of the child's machine

	Serve   bool   // be a server
	Cluster bool   // of a cluster
	Route   string // to another server of the cluster; "": the first one
	Hub     bool   // for leaf nodes
	Leaf    string // the server that has this one as a leaf node; "": none

	KiB    int             // be a rank with that much to send; 0: it is one already
	Second bool            // the rank below
	URL    string          // of its server
	Own    bool            // it has a server of its own for what it sends
	Theirs string          // the neighbour's server, from which it receives; "": URL
	Direct bool            // offer a link over TCP
	Offer  json.RawMessage `json:",omitempty"` // of the neighbour

	Exchanges int // exchange rows that often
}

// answer has the addresses of a server, or a rank's offer or time.
type answer struct {
	URL     string
	Cluster string
	Leaf    string
	Offer   json.RawMessage `json:",omitempty"`
	Median  float64         // of an exchange, in microseconds
}

// child carries out orders until there are no more.
func child(in io.Reader, out io.Writer) error {
	var c worker
	defer c.close()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := c.obey(o)
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// worker is the state of a child.
type worker struct {
	server  *server.Server
	ballast []byte // as servers and links of a run have it
	rank    order
	end     halo.End
	link    halo.Link
	next    solver.ExchangeNumber
}

func (c *worker) obey(o order) (answer, error) {
	switch {
	case o.Serve:
		return c.serve(o)
	case o.KiB > 0:
		return c.open(o)
	case o.Theirs != "":
		c.rank.Theirs = o.Theirs
		return answer{}, c.connect()
	}
	return c.exchange(o.Exchanges)
}

// serve starts a server with the limits of the embedded one.
func (c *worker) serve(o order) (a answer, err error) {
	opts := &server.Options{Host: o.Host, Port: server.RANDOM_PORT, MaxPayload: natsserver.MaxPayload,
		MaxPending: 512 << 20, NoFastProducerStall: true, NoSigs: true, NoLog: true, NoSystemAccount: true}
	if o.Cluster {
		opts.Cluster = server.ClusterOpts{Name: "placement", Host: o.Host, Port: server.RANDOM_PORT}
		if o.Route != "" {
			opts.Routes = server.RoutesFromStr(o.Route)
		}
	}
	if o.Hub {
		opts.LeafNode = server.LeafNodeOpts{Host: o.Host, Port: server.RANDOM_PORT}
	}
	if o.Leaf != "" {
		hub, err := url.Parse(o.Leaf)
		if err != nil {
			return a, err
		}
		opts.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{hub}}}
	}
	c.ballast = ballast.New()
	if c.server, err = server.NewServer(opts); err != nil {
		return a, err
	}
	c.server.Start()
	if !c.server.ReadyForConnections(patience) {
		return a, errors.New("the server does not start")
	}
	a.URL = c.server.ClientURL()
	if o.Cluster {
		a.Cluster = "nats-route://" + c.server.ClusterAddr().String()
	}
	if o.Hub {
		a.Leaf = fmt.Sprintf("nats-leaf://%s", net.JoinHostPort(o.Host, fmt.Sprint(opts.LeafNode.Port)))
	}
	return a, c.await(o)
}

// await waits until a server that is to join another one has done so.
func (c *worker) await(o order) error {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		if (o.Route == "" || c.server.NumRoutes() > 0) && (o.Leaf == "" || c.server.NumLeafNodes() > 0) {
			return nil
		}
	}
	return errors.New("the servers do not find each other")
}

// open makes this a rank, with its link unless it has to learn of the neighbour's server before.
func (c *worker) open(o order) (a answer, err error) {
	c.rank = o
	columns := o.KiB << 7 // of 8 bytes
	c.end = halo.End{Run: halo.RunIDOf("placement"), Neighbour: 1, Side: solver.Bottom, NX: columns,
		DType: solver.Float64, Send: solver.Stripe{Lo: 7, Hi: 8}, Recv: solver.Stripe{Lo: 8, Hi: 9}}
	if o.Second {
		c.end = c.end.Facing()
	}
	if c.ballast == nil {
		c.ballast = ballast.New()
	}
	if o.Own {
		if a, err = c.serve(order{Host: o.Host}); err != nil || o.Theirs == "" {
			return a, err
		}
		return a, c.connect()
	}
	if o.Direct || len(o.Offer) > 0 {
		return c.direct(o)
	}
	return a, c.connect()
}

// direct opens a link over TCP.
func (c *worker) direct(o order) (a answer, err error) {
	conn, err := dial(o.URL)
	if err != nil {
		return a, err
	}
	d := halo.Direct{Options: halo.DirectOptions{Listen: halo.ListenAt{Where: o.Host},
		NATS: halo.NATSOptions{Conn: wire.Over(conn), Timeout: patience}}}
	if o.Direct {
		c.link, a.Offer, err = d.Offer(c.end)
	} else {
		c.link, err = d.Accept(c.end, o.Offer)
	}
	return a, err
}

// connect opens a link over NATS.
func (c *worker) connect() (err error) {
	conn, err := c.dial()
	if err != nil {
		return err
	}
	c.link, err = halo.NewNATS(context.Background(), c.end, halo.NATSOptions{Conn: conn, Timeout: patience,
		Dial: func(context.Context) (halo.OwnConn, error) { return c.dial() }})
	return err
}

// dial makes a connection of the link.
func (c *worker) dial() (halo.OwnConn, error) {
	if c.rank.Theirs == "" {
		conn, err := dial(c.rank.URL)
		if err != nil {
			return nil, err
		}
		return wire.Over(conn), nil
	}
	out, err := dial("", nats.InProcessServer(c.server))
	if err != nil {
		return nil, err
	}
	in, err := dial(c.rank.Theirs)
	if err != nil {
		out.Close()
		return nil, err
	}
	return &twoWays{Conn: wire.Over(out), in: wire.Over(in)}, nil
}

func dial(url string, o ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(url, append(o, nats.Timeout(patience), nats.MaxReconnects(-1))...)
}

// exchange makes n exchanges and returns the median of their times.
func (c *worker) exchange(n int) (answer, error) {
	defer runtime.KeepAlive(c.ballast)
	out, in := make([]byte, c.end.SendBytes()), make([]byte, c.end.RecvBytes())
	times := make([]time.Duration, 0, n)
	for i := range warmUp + n {
		begin := time.Now()
		if err := c.link.Send(context.Background(), c.next, out); err != nil {
			return answer{}, err
		}
		if err := c.link.Recv(context.Background(), c.next, in); err != nil {
			return answer{}, err
		}
		if c.next++; i >= warmUp {
			times = append(times, time.Since(begin))
		}
	}
	slices.Sort(times)
	return answer{Median: float64(times[n/2].Nanoseconds()) / 1e3}, nil
}

func (c *worker) close() {
	if c.link != nil {
		_ = c.link.Close() // its rows have been received
	}
	if c.server != nil {
		c.server.Shutdown()
	}
}
