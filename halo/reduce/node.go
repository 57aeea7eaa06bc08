package reduce

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"jacobi/internal/base/shm"
	"jacobi/solver"
)

// errLate is the error of a wait that reached its deadline.
var errLate = os.ErrDeadlineExceeded

// node adds the contributions of the ranks of one node. Their segment holds, for every slot of the ring,
//
//	complete  word: number of times that all ranks have contributed to the slot, modulo 2^32
//	total     word: number of times that the leader has written a total over all nodes to the slot, modulo 2^32
//	arrivals  uint64 in a cache line of its own: contributions to the slot since the start
//	a cell for each rank of the node, and one for the total over all nodes
//
// and one cache line with the leader's hint (see setHint). A cell is its pass + 1 (uint64, written last), then the
// number of sums (uint32), the flags (uint32) and the sums, each with three limbs and Bad (4 uint64).
//
// The rank that contributes last completes the slot and wakes the others. If all ranks of the run share the node, each
// rank then adds all cells itself. Posting and waiting make no system call unless a rank sleeps.
type node struct {
	seg     *shm.Segment
	ranks   []int // by cell, ascending
	cell    int   // of this rank
	window  window
	maxSums int // in a cell
	spin    time.Duration
}

const (
	line     = shm.WordSize
	cellHead = 16
	sumCell  = 32
)

func cellBytes(sums int) int { return (cellHead + sums*sumCell + line - 1) / line * line }

// nodeBytes returns the size of the segment of a node with the given number of ranks, and of sums in a cell.
func nodeBytes(w window, ranks, sums int) int {
	return line + int(w.ring())*(3*line+(ranks+1)*cellBytes(sums))
}

func (n *node) slot(pass uint64) int {
	return line + n.window.slot(pass)*(3*line+(len(n.ranks)+1)*cellBytes(n.maxSums))
}

func (n *node) complete(pass uint64) *shm.Word { return n.seg.Word(n.slot(pass)) }
func (n *node) total(pass uint64) *shm.Word    { return n.seg.Word(n.slot(pass) + line) }
func (n *node) arrivals(pass uint64) *atomic.Uint64 {
	return n.seg.Uint64(n.slot(pass) + 2*line)
}

func (n *node) cellAt(pass uint64, cell int) (mark *atomic.Uint64, body []byte) {
	at := n.slot(pass) + 3*line + cell*cellBytes(n.maxSums)
	return n.seg.Uint64(at), n.seg.Bytes()[at+8 : at+cellBytes(n.maxSums)]
}

// round is the value of complete and total once pass is done.
func (n *node) round(pass uint64) uint32 { return uint32(pass/n.window.ring() + 1) }

func (n *node) post(pass uint64, c solver.Contribution) {
	n.write(pass, n.cell, c)
	if n.arrivals(pass).Add(1) == uint64(len(n.ranks))*(pass/n.window.ring()+1) {
		n.complete(pass).Store(n.round(pass))
	}
}

// wait waits for the contributions of all ranks of the node and returns their sum.
func (n *node) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	if err := n.await(ctx, n.complete(pass), pass, deadline); err != nil {
		return solver.Contribution{}, err
	}
	var sum solver.Contribution
	for cell, rank := range n.ranks {
		c, err := n.read(pass, cell)
		if err != nil {
			return solver.Contribution{}, err
		}
		if err := merge(&sum, cell == 0, pass, rank, c); err != nil {
			return solver.Contribution{}, err
		}
	}
	return sum, nil
}

func (n *node) await(ctx context.Context, w *shm.Word, pass uint64, deadline time.Time) error {
	want := n.round(pass)
	return w.Wait(ctx, n.spin, deadline, func(v uint32) bool { return v == want })
}

// putTotal gives the total over all nodes to the ranks of this node. Only the leader calls it.
func (n *node) putTotal(pass uint64, c solver.Contribution) {
	n.write(pass, len(n.ranks), c)
	n.total(pass).Store(n.round(pass))
}

// waitTotal waits for the total over all nodes.
func (n *node) waitTotal(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	if err := n.await(ctx, n.total(pass), pass, deadline); err != nil {
		return solver.Contribution{}, err
	}
	return n.read(pass, len(n.ranks))
}

func (n *node) write(pass uint64, cell int, c solver.Contribution) {
	mark, b := n.cellAt(pass, cell)
	binary.NativeEndian.PutUint32(b, uint32(len(c.Sums)))
	binary.NativeEndian.PutUint32(b[4:], uint32(c.Flags))
	b = b[8:]
	for _, s := range c.Sums {
		for i, limb := range s.Limbs {
			binary.NativeEndian.PutUint64(b[8*i:], limb)
		}
		binary.NativeEndian.PutUint64(b[24:], uint64(flag(s.Bad)))
		b = b[sumCell:]
	}
	mark.Store(pass + 1)
}

var errTorn = errors.New("the shared memory of the node does not hold what its ranks wrote")

func (n *node) read(pass uint64, cell int) (solver.Contribution, error) {
	mark, b := n.cellAt(pass, cell)
	count := int(binary.NativeEndian.Uint32(b))
	if mark.Load() != pass+1 || count > n.maxSums {
		return solver.Contribution{}, errTorn
	}
	c := solver.Contribution{Sums: make([]solver.Sum, count), Flags: solver.Flags(binary.NativeEndian.Uint32(b[4:]))}
	b = b[8:]
	for i := range c.Sums {
		for j := range c.Sums[i].Limbs {
			c.Sums[i].Limbs[j] = binary.NativeEndian.Uint64(b[8*j:])
		}
		c.Sums[i].Bad = binary.NativeEndian.Uint64(b[24:]) != 0
		b = b[sumCell:]
	}
	return c, nil
}

// missing returns the ranks of the node that have not contributed to pass.
func (n *node) missing(pass uint64) []int {
	var gone []int
	for cell, rank := range n.ranks {
		if mark, _ := n.cellAt(pass, cell); mark.Load() != pass+1 {
			gone = append(gone, rank)
		}
	}
	return gone
}

// setHint tells the ranks of the node which rank of another node is missing from pass. Only the leader calls it.
func (n *node) setHint(pass uint64, rank int) { n.seg.Uint64(0).Store(pass<<24 | uint64(rank+1)) }

// hint returns the rank that setHint named for pass, or nil.
func (n *node) hint(pass uint64) []int {
	if h := n.seg.Uint64(0).Load(); h>>24 == pass && h&0xffffff != 0 {
		return []int{int(h&0xffffff) - 1}
	}
	return nil
}

func (n *node) close() error { return n.seg.Close() }

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// member is the path of a rank that does not lead its node, in a run of several nodes.
type member struct{ *node }

func (m member) wait(ctx context.Context, pass uint64, deadline time.Time) (solver.Contribution, error) {
	return m.waitTotal(ctx, pass, deadline)
}

func (m member) missing(pass uint64) []int {
	if gone := m.node.missing(pass); gone != nil {
		return gone
	}
	return m.hint(pass)
}
