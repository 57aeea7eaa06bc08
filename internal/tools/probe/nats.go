package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// natsPart measures the ways from the first node to all nodes, itself included: a message to it passes the server, too.
func natsPart(ctx context.Context, m *Machine) (r Result, err error) {
	if m.Dial == nil {
		r.skip("a run of one rank without a launcher has no server")
	}
	if m.Dial == nil || m.Node != 0 { // the first node measures all ways
		return r, nil
	}
	conn, closeConn, err := m.Dial(ctx)
	if err != nil {
		return r, err
	}
	defer closeConn()
	columns := "to|round trip:s|99 of 100 within:s"
	for _, bytes := range natsSizes {
		columns += "|frames of " + size(int64(bytes)) + ":B/s"
	}
	t := newTable("", columns)
	var trips, peaks []float64
	for node, host := range m.Nodes {
		trip, worst, rates, err := natsTo(ctx, conn, m.Echo(node))
		if err != nil {
			return r, fmt.Errorf("to %s: %w", host, err)
		}
		cells, peak := []any{host, trip, worst}, slices.Max(rates)
		for _, v := range rates {
			cells = append(cells, v)
		}
		t.row(cells...)
		trips, peaks = append(trips, trip), append(peaks, peak)
		r.add(trip, "s", "nats.%s.round_trip", host)
		r.add(peak, "B/s", "nats.%s.rate", host)
	}
	r.show(t)
	for node := 1; node < len(m.Nodes) && len(m.Nodes) > 2; node++ { // the way to this node is not comparable
		if usual := median(trips[1:]); trips[node] > 1.5*usual {
			r.find("%s: a round trip takes %s; the median of the nodes is %s.", m.Nodes[node], seconds(trips[node]),
				seconds(usual))
		}
		if usual := median(peaks[1:]); peaks[node] < fair*usual {
			r.find("%s: frames arrive at %s; the median of the nodes is %s.", m.Nodes[node], rate(peaks[node]),
				rate(usual))
		}
	}
	return r, nil
}

// natsTo measures the way to the echo at subject: the median of round trips of a message of 64 bytes, in seconds, what
// 99 of 100 need at most, and the rates of natsSizes, in bytes a second; 0 for frames that are too large for the
// server.
func natsTo(ctx context.Context, conn pubsub.Conn, subject string) (trip, worst float64, rates []float64, err error) {
	ping := make([]byte, 64)
	ping[0] = echoPing
	var trips []float64
	for i := range natsTrips + 10 {
		start := time.Now()
		if _, err := ask(ctx, conn, subject, ping); err != nil {
			return 0, 0, nil, err
		}
		if i >= 10 { // the first ones warm up
			trips = append(trips, time.Since(start).Seconds())
		}
	}
	slices.Sort(trips)
	rates = make([]float64, len(natsSizes))
	for i, size := range natsSizes {
		for range natsTries {
			if int64(size)+natsAllowance > conn.MaxPayload() {
				break
			}
			rate, err := natsStreamOf(ctx, conn, subject, size)
			if err != nil {
				return 0, 0, nil, err
			}
			rates[i] = max(rates[i], rate)
		}
	}
	return trips[len(trips)/2], trips[len(trips)*99/100], rates, nil
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

// The first byte of a message to an echo.
const (
	echoPing  = 'p' // send the message back
	echoFrame = 'f' // count the bytes, send nothing
	echoCount = 'c' // send back how many bytes have come since the last count, as 8 bytes, little-endian
)

// echoPending bounds the bytes that wait for an echo; a stream of frames has less.
const echoPending = 1 << 30

// StartEcho lets conn answer the probe of rank 0 at a subject.
func StartEcho(conn pubsub.Conn, subject string) (stop func() error, err error) {
	var mu sync.Mutex
	bytes := uint64(0)
	sub, err := conn.Subscribe(subject, func(m pubsub.Message) {
		if len(m.Data) == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch m.Data[0] {
		case echoPing:
			_ = conn.Publish(m.Reply, m.Data) // the probe waits for the answer with a deadline
		case echoFrame:
			bytes += uint64(len(m.Data))
		case echoCount:
			_ = conn.Publish(m.Reply, binary.LittleEndian.AppendUint64(nil, bytes))
			bytes = 0
		}
	})
	if err != nil {
		return nil, err
	}
	return sub.Unsubscribe, sub.SetPendingLimits(-1, echoPending)
}
