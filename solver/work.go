package solver

import "time"

// WorkKind says what a device does in a Work.
type WorkKind uint8

// The kinds of work: kernels, waits for neighbours, and copies.
const (
	WorkStripe      WorkKind = iota // a pass over the whole stripe
	WorkEdges                       // a pass over the edges that neighbours read
	WorkInterior                    // a pass over the rows between
	WorkDown                        // the first half of a cycle on a level
	WorkTail                        // the solution on the coarsest levels
	WorkUp                          // the second half of a cycle on a level
	WorkInterpolate                 // the way up from one mesh of full multigrid to the next
	WorkHandOn                      // a kernel writes edge rows into the halos that they fill
	WorkAwait                       // a wait for rows of neighbours, and copies of them to their places
	WorkToPeer                      // edge rows are copied into a neighbour's halo
	WorkToHost                      // rows are copied to the host
	WorkFromHost                    // rows are copied from the host
	WorkSums                        // the sums of a pass are copied to the host
	WorkCG                          // a part of a step of conjugate gradients
	workKinds
)

// Valid reports whether k is one of the kinds.
func (k WorkKind) Valid() bool { return k < workKinds }

// WorkQueues is the largest number of queues of a device. Work in one queue is done in order.
const WorkQueues = 2

// Work is something that a device does, in one of its queues. Fields that do not describe its kind are 0.
type Work struct {
	Kind   WorkKind
	Queue  int
	Number uint64 // of the pass or the exchange
	First  int    // the first sweep of the pass
	Sweeps int    // of the pass
	Level  int    // of multigrid
	Rows   int    // copied
}

// OnWork takes work that a device has done. Start is by the clock of the host, which was compared with the device's;
// took is by the device's clock. unit is the pass or cycle, as a trace counts them.
type OnWork func(w Work, unit int, start time.Time, took time.Duration)
