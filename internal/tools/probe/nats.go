package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jacobi/internal/base/pubsub"
)

const (
	natsTrips     = 200
	natsStream    = 16 << 20 // bytes of a stream of frames
	natsMost      = 4000     // frames of a stream
	natsLeast     = 32
	natsTries     = 2
	natsTimeout   = 10 * time.Second // of one stream
	natsAllowance = 4 << 10          // of a message, for what the connection adds
)

// natsSizes are the sizes of frames, in bytes.
var natsSizes = []int{64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10}

// NATSReport has what the way to one node does, through the server that a run would use.
type NATSReport struct {
	Node  string      `json:"node"`
	Trip  float64     `json:"round_trip_seconds"`        // median of many, of a message of 64 bytes
	Least float64     `json:"round_trip_seconds_least"`  // the shortest
	Worst float64     `json:"round_trip_seconds_99_100"` // 99 of 100 are shorter
	Rates []FrameRate `json:"rates"`
}

// FrameRate is the rate of a stream of frames to a node.
type FrameRate struct {
	Bytes int     `json:"frame_bytes"`
	Rate  float64 `json:"rate"` // bytes a second
}

// natsPart measures the ways from the first node to all nodes, itself included: a message to it passes the server, too.
func natsPart(ctx context.Context, m *Machine) (r Result, err error) {
	if m.Dial == nil {
		r.skip("a run of one rank without a launcher has no server")
		return r, nil
	}
	if m.Node != 0 {
		return r, nil // the first node measures all ways
	}
	conn, closeConn, err := m.Dial(ctx)
	if err != nil {
		return r, err
	}
	defer closeConn()
	all := []NATSReport{}
	for node := range m.Nodes {
		n, err := natsTo(ctx, conn, m.Nodes[node], m.Echo(node))
		if err != nil {
			return r, fmt.Errorf("to %s: %w", m.Nodes[node], err)
		}
		all = append(all, n)
	}
	judgeNATS(all, &r)
	r.Data, r.Text = all, natsText(all)
	return r, nil
}

// natsTo measures the way to the echo at subject.
func natsTo(ctx context.Context, conn pubsub.Conn, node, subject string) (n NATSReport, err error) {
	n = NATSReport{Node: node, Rates: []FrameRate{}}
	ping := make([]byte, 64)
	ping[0] = echoPing
	var trips []float64
	for i := range natsTrips + 10 {
		start := time.Now()
		if _, err := ask(ctx, conn, subject, ping); err != nil {
			return n, err
		}
		if i >= 10 { // the first ones warm up
			trips = append(trips, time.Since(start).Seconds())
		}
	}
	slices.Sort(trips)
	n.Least, n.Trip, n.Worst = trips[0], trips[len(trips)/2], trips[len(trips)*99/100]
	for _, size := range natsSizes {
		if int64(size)+natsAllowance > conn.MaxPayload() {
			break
		}
		best := 0.0
		for range natsTries {
			rate, err := natsStreamOf(ctx, conn, subject, size)
			if err != nil {
				return n, err
			}
			best = max(best, rate)
		}
		n.Rates = append(n.Rates, FrameRate{size, best})
	}
	return n, nil
}

// natsStreamOf sends frames of size bytes and returns their rate until all have arrived.
func natsStreamOf(ctx context.Context, conn pubsub.Conn, subject string, size int) (float64, error) {
	frames := min(natsMost, max(natsLeast, natsStream/size))
	frame := make([]byte, size)
	frame[0] = echoFrame
	start := time.Now()
	for range frames {
		if err := conn.Publish(subject, frame); err != nil {
			return 0, err
		}
	}
	answer, err := ask(ctx, conn, subject, []byte{echoCount})
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if len(answer) != 8 || binary.LittleEndian.Uint64(answer) != uint64(frames*size) {
		return 0, errors.New("frames were lost on the way")
	}
	return float64(frames*size) / took.Seconds(), nil
}

// ask sends a message and returns the data of the answer.
func ask(ctx context.Context, conn pubsub.Conn, subject string, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	answer, err := conn.RequestWithContext(ctx, subject, data)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", natsTimeout)
	}
	return answer.Data, err
}

// judgeNATS adds figures, and nodes whose way is slower than those to the others.
func judgeNATS(all []NATSReport, r *Result) {
	var trips, peaks []float64
	for _, n := range all {
		peak := 0.0
		for _, f := range n.Rates {
			peak = max(peak, f.Rate)
		}
		trips, peaks = append(trips, n.Trip), append(peaks, peak)
		r.add(n.Trip, "s", "nats.%s.round_trip", n.Node)
		r.add(peak, "B/s", "nats.%s.rate", n.Node)
	}
	if len(all) < 3 { // the first node, and one other, to which there is no comparable way
		return
	}
	for i, n := range all[1:] {
		if usual := median(trips[1:]); n.Trip > 1.5*usual {
			r.find("%s: a round trip takes %s; the median of the nodes is %s.", n.Node, seconds(n.Trip), seconds(usual))
		}
		if usual := median(peaks[1:]); peaks[i+1] < fair*usual {
			r.find("%s: frames arrive at %s; the median of the nodes is %s.", n.Node, rate(peaks[i+1]), rate(usual))
		}
	}
}

// natsText returns the table of the part.
func natsText(all []NATSReport) string {
	var b strings.Builder
	b.WriteString("to\tround trip\t99 of 100 within")
	for _, size := range natsSizes {
		fmt.Fprintf(&b, "\tframes of %s", humanBytes(size))
	}
	b.WriteString("\n")
	for _, n := range all {
		fmt.Fprintf(&b, "%s\t%s\t%s", n.Node, seconds(n.Trip), seconds(n.Worst))
		for i := range natsSizes {
			cell := "-"
			if i < len(n.Rates) {
				cell = rate(n.Rates[i].Rate)
			}
			b.WriteString("\t" + cell)
		}
		b.WriteString("\n")
	}
	return table(b.String())
}

// humanBytes formats a size of a frame shortly.
func humanBytes(n int) string {
	if n >= 1<<10 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
