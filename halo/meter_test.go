package halo_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	. "jacobi/halo"
	"jacobi/solver"
)

// TestMeter exchanges rows through meters, in the links' own memory where they lend it, and checks what is counted. The
// transfers that are observed add up to that.
func TestMeter(t *testing.T) {
	for _, tr := range transports(t) {
		t.Run(tr.Name, func(t *testing.T) {
			e := freshEnd(100, 3)
			a, b := tr.Must(t, e, long)
			meters := [2]*Meter{{Link: a}, {Link: b}}
			var observed [2][CallRecv + 1]time.Duration
			for i, m := range meters {
				m.Observe(func(t Transfer) { observed[i][t.Call] += t.Took })
			}
			const count = 20
			var wg sync.WaitGroup
			for i, end := range []End{e, e.Facing()} {
				wg.Go(func() {
					for n := range solver.ExchangeNumber(count) {
						if err := exchangeLent(t, meters[i].Rows(), end, n); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			for i, m := range meters {
				n := m.Traffic()
				if o := observed[i]; o[CallRoom]+o[CallSend] != n.Send || o[CallRecv] != n.Wait {
					t.Errorf("end %d: transfers of %v, counted %v and %v", i, o, n.Send, n.Wait)
				}
				if n.Exchanges != count || n.Bytes != count*uint64(e.SendBytes()+e.RecvBytes()) ||
					n.Sent != count*uint64(e.SendBytes()) || n.Wait <= 0 || n.Send <= 0 {
					t.Errorf("end %d: %+v", i, n)
				}
			}
		})
	}
}

// exchangeLent makes one exchange as solver.HostExchange does.
func exchangeLent(t *testing.T, l solver.RowLink, e End, n solver.ExchangeNumber) error {
	out, in := make([]byte, e.SendBytes()), make([]byte, e.RecvBytes())
	lender, lends := l.(solver.RowLender)
	if lends {
		room, err := lender.Room(t.Context(), n, len(out))
		if err != nil {
			return err
		}
		if len(room) != len(out) {
			return errors.New("the room has another size")
		}
		out = room
	}
	fillRows(out, e.Rank, e.Send, e.NX, n)
	sent := bytes.Clone(out)
	if err := l.Send(t.Context(), n, out); err != nil {
		return err
	}
	if lends {
		rows, err := lender.Take(t.Context(), n, len(in))
		if err != nil {
			return err
		}
		if !bytes.Equal(out, sent) {
			return errors.New("the rows sent have changed")
		}
		in = rows
	} else if err := l.Recv(t.Context(), n, in); err != nil {
		return err
	}
	return verifyRows(in, e.Neighbour, e.Recv, e.NX, n)
}
