package halo

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"
)

// Large exchanges are divided among several connections, so that several cores copy, seal, and serve them.
const (
	maxLanes = 4
	laneRows = 32 << 10 // bytes of rows for each lane
)

// lanes returns the number of lanes of a link, the same at both ends.
func (o *NATSOptions) lanes(end End) int {
	if o.Lanes > 0 {
		return o.Lanes
	}
	if o.Dial == nil {
		return 1
	}
	return min(max(1, max(end.SendBytes(), end.RecvBytes())/laneRows), maxLanes)
}

// lane is a connection that carries frames.
type lane struct {
	conn    Conn
	publish Publisher
	own     OwnConn // nil: the connection is another one's
	subject string  // of the frames sent
}

// connect makes the connections. If one of the further ones is refused, its lane uses the first one.
func (c *natsCarrier) connect(ctx context.Context) error {
	o, there := &c.link.opts, c.link.end.Facing()
	theirs := o.subject(there.Run, "halo", there.Rank, there.Side)
	c.ask = theirs + ".ask"
	for i := range o.lanes(c.link.end) {
		a := &lane{conn: o.Conn, subject: theirs}
		if i > 0 {
			a.subject = fmt.Sprintf("%s.%d", theirs, i)
		}
		if o.Dial != nil {
			own, err := o.Dial(ctx)
			switch {
			case err == nil:
				a.conn, a.own = own, own
			case i == 0:
				return err
			default:
				a.conn = c.lanes[0].conn
				o.Log.Debug("a link has fewer connections than it could use", zap.Error(err))
			}
		}
		if a.publish = o.Publisher; a.publish == nil {
			a.publish = a.conn
		}
		c.lanes = append(c.lanes, a)
		if a.conn == nil {
			return errors.New("no connection")
		}
	}
	return nil
}
