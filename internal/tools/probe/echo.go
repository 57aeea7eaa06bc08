package probe

import (
	"encoding/binary"
	"sync"

	"jacobi/internal/base/pubsub"
)

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
