package halo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"jacobi/solver"
)

// RunID identifies one start of a run.
type RunID [16]byte

// RunIDOf returns the id of the run called name: the first 16 bytes of the SHA-256 of name. Every start of a run has a
// new name, a restart included.
func RunIDOf(name string) RunID {
	sum := sha256.Sum256([]byte(name))
	return RunID(sum[:len(RunID{})])
}

// String returns the id as 32 hexadecimal digits, which fit into a NATS subject.
func (id RunID) String() string { return hex.EncodeToString(id[:]) }

// End describes one end of a link: a side of a rank, and the rows sent and received there. The two ends of a link
// mirror each other (see Facing); every transport checks that they do.
type End struct {
	Run       RunID
	Rank      int
	Neighbour int         // equals Rank for a single rank with periodic top and bottom
	Side      solver.Side // of Rank; the neighbour's is the opposite one
	NX        int         // values a row
	DType     solver.DType
	Send      solver.Stripe // rows of Rank that fill the neighbour's halo: the most that an exchange sends
	Recv      solver.Stripe // rows of Neighbour that fill Rank's halo: the most that an exchange receives
}

// Ends returns the ends of rank, by side, for a mesh divided into stripes with halos of depth rows. An end is nil where
// the mesh ends.
func Ends(run RunID, mesh solver.Mesh, stripes []solver.Stripe, depth, rank int) [2]*End {
	n := len(stripes)
	end := func(side solver.Side, neighbour int) *End {
		mine, theirs := stripes[rank], stripes[neighbour]
		e := &End{Run: run, Rank: rank, Neighbour: neighbour, Side: side, NX: mesh.NX, DType: mesh.DType}
		if side == solver.Top {
			e.Send = solver.Stripe{Lo: mine.Lo, Hi: mine.Lo + depth}
			e.Recv = solver.Stripe{Lo: theirs.Hi - depth, Hi: theirs.Hi}
		} else {
			e.Send = solver.Stripe{Lo: mine.Hi - depth, Hi: mine.Hi}
			e.Recv = solver.Stripe{Lo: theirs.Lo, Hi: theirs.Lo + depth}
		}
		return e
	}
	var ends [2]*End
	if rank > 0 || mesh.PeriodicRows() {
		ends[solver.Top] = end(solver.Top, (rank+n-1)%n)
	}
	if rank < n-1 || mesh.PeriodicRows() {
		ends[solver.Bottom] = end(solver.Bottom, (rank+1)%n)
	}
	return ends
}

// Facing returns the other end of the link.
func (e End) Facing() End {
	e.Rank, e.Neighbour = e.Neighbour, e.Rank
	e.Side = e.Side.Opposite()
	e.Send, e.Recv = e.Recv, e.Send
	return e
}

// SendBytes returns the most bytes of an exchange that Send takes: the size of the rows Send, stored without gaps.
func (e End) SendBytes() int { return e.bytes(e.Send) }

// RecvBytes returns the most bytes of an exchange that Recv yields: the size of the rows Recv, stored without gaps.
func (e End) RecvBytes() int { return e.bytes(e.Recv) }

func (e End) bytes(rows solver.Stripe) int { return rows.Rows() * e.NX * e.DType.Size() }

func (e End) check() error {
	switch {
	case e.NX < 1 || e.NX > math.MaxUint32:
		return fmt.Errorf("halo: link of rank %d: %d columns", e.Rank, e.NX)
	case e.DType != solver.Float32 && e.DType != solver.Float64:
		return fmt.Errorf("halo: link of rank %d: %v", e.Rank, e.DType)
	case e.Side != solver.Top && e.Side != solver.Bottom:
		return fmt.Errorf("halo: link of rank %d: side %d", e.Rank, e.Side)
	case e.Rank < 0 || e.Neighbour < 0 || max(e.Rank, e.Neighbour) > math.MaxUint32:
		return fmt.Errorf("halo: link between ranks %d and %d", e.Rank, e.Neighbour)
	}
	for _, s := range []solver.Stripe{e.Send, e.Recv} {
		if s.Lo < 0 || s.Hi <= s.Lo || s.Hi > math.MaxUint32 || s.Rows() > math.MaxInt/16/e.NX {
			return fmt.Errorf("halo: link of rank %d: rows %v", e.Rank, s)
		}
	}
	return nil
}
