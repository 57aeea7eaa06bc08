package cuda

import (
	"context"
	"errors"
	"fmt"

	"jacobi/cuda/driver"
	"jacobi/solver"
	"jacobi/solver/multigrid"
)

// LevelExchange implements solver.Exchange for Levels whose neighbours' GPUs write into each other's memory. It only
// queues: copies into the window of another rank, the number of the exchange into a word there, the wait for the word
// that the other rank writes here, and copies out of the own window. So the host waits for no rows in a cycle. Rows of
// other neighbours go over links through the host, and so does a gather unless every rank reaches the memory of every
// other.
type LevelExchange struct {
	host   *solver.HostExchange
	linked [2]bool // by side: rows go over a link
	*levelWindows
}

// NewLevelExchange returns the exchange of a rank whose window is open. neighbours are by side, nil where rows go over
// the links of host. all are the windows of all ranks but this one, by rank; empty if some cannot be reached. sole
// means that no other rank uses the GPU, so that kernels may wait for other ranks.
func NewLevelExchange(v *Levels, host *solver.HostExchange, rank int, neighbours [2]*Window, all []*Window,
	sole bool) (*LevelExchange, error) {
	w := &levelWindows{dev: v.dev, stream: v.stream, own: v.window, rank: rank, open: append(neighbours[:], all...),
		mover: moveCopies{}}
	x := &LevelExchange{host: host, levelWindows: w}
	for side, n := range neighbours {
		if n != nil && !v.layout.Neighbour[side] {
			return nil, fmt.Errorf("cuda levels: memory of a neighbour at the %v side, which has none",
				solver.Side(side))
		}
		w.neighbours[side], x.linked[side] = v.window.of(n), n == nil && v.layout.Neighbour[side]
	}
	for _, other := range all {
		w.all = append(w.all, v.window.of(other))
	}
	if sole {
		k, err := newMoveKernels(v.dev)
		if err != nil {
			return nil, fmt.Errorf("cuda levels: %w", err)
		}
		w.mover = k
	}
	if err := v.dev.newEvents(&w.marks[0], &w.marks[1]); err != nil {
		return nil, err
	}
	return x, nil
}

// linkedRows are rows at the sides with links alone.
type linkedRows struct {
	solver.HaloRows
	linked [2]bool
}

// HaloBytes implements solver.HaloRows.
func (r linkedRows) HaloBytes() [2]int {
	bytes := r.HaloRows.HaloBytes()
	for side, linked := range r.linked {
		if !linked {
			bytes[side] = 0
		}
	}
	return bytes
}

// on returns the Levels of an exchange, which must share the device.
func (x *LevelExchange) on(d multigrid.Device) (*Levels, error) {
	v, ok := d.(*Levels)
	if !ok || v.dev != x.dev {
		return nil, fmt.Errorf("cuda levels: %T does not share this device", d)
	}
	return v, nil
}

// halo returns the rows of r and where they lie.
func (x *LevelExchange) halo(r solver.HaloRows) (*multigrid.Halo, *field, error) {
	h, ok := r.(*multigrid.Halo)
	if !ok {
		return nil, nil, fmt.Errorf("cuda levels: %T is not of a level", r)
	}
	v, err := x.on(h.Device)
	if err != nil {
		return nil, nil, err
	}
	own := h.Layout.Stripes[h.Level]
	f, err := v.array(h.Level, h.Array, own, own.Rows()*h.Layout.Plan.RowBytes(h.Level, h.Array))
	return h, f, err
}

// Post implements solver.Exchange.
func (x *LevelExchange) Post(ctx context.Context, r solver.HaloRows) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h, f, err := x.halo(r)
	if err != nil {
		return err
	}
	x.exchanges++
	var moves []move
	for i, p := range x.neighbours {
		if p.base != 0 {
			there := solver.Side(i).Opposite()
			moves = append(moves, move{from: f.at(h.Edge(solver.Side(i)).Lo), to: p.rowsOf(there, x.exchanges),
				word: p.came(there), blocks: x.own.count(len(moves)), units: rowUnits(f)})
		}
	}
	if err := x.write(x.exchanges, moves); err != nil {
		return err
	}
	if x.linked == [2]bool{} {
		return nil
	}
	return x.host.Post(ctx, linkedRows{r, x.linked})
}

// rowUnits returns the size of a halo of f.
func rowUnits(f *field) uint32 { return uint32(multigrid.HaloDepth * f.pitch / moveUnit) }

// Wait implements solver.Exchange.
func (x *LevelExchange) Wait(ctx context.Context, r solver.HaloRows) error {
	h, f, err := x.halo(r)
	if err != nil {
		return err
	}
	if x.linked != [2]bool{} {
		if err := x.host.Wait(ctx, linkedRows{r, x.linked}); err != nil {
			return err
		}
	}
	var moves []move
	for i, p := range x.neighbours {
		if here := solver.Side(i); p.base != 0 {
			moves = append(moves, move{from: x.own.rowsOf(here, x.exchanges), to: f.at(h.Beyond(here).Lo),
				word: x.own.came(here), units: rowUnits(f)})
		}
	}
	if err := x.read(x.exchanges, moves); err != nil {
		return err
	}
	x.overlaps.Add(1)
	x.written.Add(uint64(multigrid.HaloDepth * f.pitch))
	return x.pace(ctx, 8)
}

// Gather implements solver.Exchange. Each rank writes its block into the windows of all others.
func (x *LevelExchange) Gather(ctx context.Context, r solver.BlockRows) error {
	b, ok := r.(*multigrid.RankBlocks)
	if len(x.all) == 0 || !ok {
		return x.host.Gather(ctx, r)
	}
	v, err := x.on(b.Device)
	if err != nil {
		return err
	}
	if v.weighted != nil && v.weighted.sets != nil { // for whose unknowns the windows have no room
		return x.host.Gather(ctx, r)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	blocks := b.Rows
	whole := solver.Stripe{Lo: blocks[0].Lo, Hi: blocks[len(blocks)-1].Hi}
	f, err := v.array(b.Level, b.Array, whole, whole.Rows()*b.RowBytes)
	if err != nil {
		return err
	}
	if n := whole.Rows() * f.pitch; n > x.own.right {
		return fmt.Errorf("cuda levels: %d bytes of a level are gathered, the window has %d", n, x.own.right)
	}
	x.gathers++
	if err := x.gather(f, whole, blocks); err != nil {
		return err
	}
	return x.pace(ctx, 4*len(blocks))
}

// gather moves the blocks of f, which together are the rows whole.
func (x *LevelExchange) gather(f *field, whole solver.Stripe, blocks []solver.Stripe) error {
	n, own := x.gathers, blocks[x.rank]
	var written, read []move
	for i := 1; i < len(blocks); i++ { // not all into the same memory at once
		r := (x.rank + i) % len(blocks)
		to, theirs := x.all[r], blocks[r]
		place := func(w levelWindow, s solver.Stripe) driver.DevicePtr {
			return w.rightOf(n) + driver.DevicePtr((s.Lo-whole.Lo)*f.pitch)
		}
		written = append(written, move{from: f.at(own.Lo), to: place(to, own), word: to.gathered(x.rank),
			blocks: x.own.count(len(written)), units: uint32(own.Rows() * f.pitch / moveUnit)})
		read = append(read, move{from: place(x.own, theirs), to: f.at(theirs.Lo), word: x.own.gathered(r),
			units: uint32(theirs.Rows() * f.pitch / moveUnit)})
	}
	if err := x.write(n, written); err != nil {
		return err
	}
	return x.read(n, read)
}

// write lets the stream write rows into the memory of other ranks.
func (x *LevelExchange) write(n uint32, moves []move) error {
	defer x.dev.times.begin(x.stream, solver.Work{Kind: solver.WorkToPeer, Number: uint64(n)}).end()
	return x.mover.write(x.stream, n, moves)
}

// read makes the stream wait for the rows of other ranks and copy them to their places.
func (x *LevelExchange) read(n uint32, moves []move) error {
	defer x.dev.times.begin(x.stream, solver.Work{Kind: solver.WorkAwait, Number: uint64(n)}).end()
	return x.mover.read(x.stream, n, moves)
}

var _ solver.Exchange = (*LevelExchange)(nil)

const (
	mostMoves   = 8 // of a launch
	moveThreads = 256
	moveBlocks  = 64 // of a move: enough to saturate the links between two GPUs
	moveUnit    = 16 // bytes
)

// move is rows in one piece: struct Move in kernels/zone.cu.
type move struct {
	from, to, word, blocks driver.DevicePtr
	units                  uint32
	_                      uint32
}

// moves is the argument of push_zones and take_zone: struct Moves.
type moves struct {
	moves  [mostMoves]move
	number uint32
	blocks uint32
}

// moveKernels moves rows between windows by kernels that wait, of a rank that has its GPU to itself.
type moveKernels struct {
	push, take       call
	pushArg, takeArg *moves
}

func newMoveKernels(d *device) (*moveKernels, error) {
	k := &moveKernels{pushArg: new(moves), takeArg: new(moves)}
	m, err := d.context.Load(code{zonePTX, zone90}.on(d.gpu, false))
	if err != nil {
		return nil, err
	}
	if k.push, err = newCall(m, "push_zones", k.pushArg, moveThreads); err != nil {
		return nil, err
	}
	k.take, err = newCall(m, "take_zone", k.takeArg, moveThreads)
	return k, err
}

// write implements rowMover.
func (k *moveKernels) write(s *driver.Stream, n uint32, all []move) error {
	return launchMoves(s, k.push, k.pushArg, n, all)
}

// read implements rowMover.
func (k *moveKernels) read(s *driver.Stream, n uint32, all []move) error {
	return launchMoves(s, k.take, k.takeArg, n, all)
}

// launchMoves launches a kernel for at most mostMoves moves at a time.
func launchMoves(s *driver.Stream, c call, a *moves, n uint32, all []move) error {
	for len(all) > 0 {
		*a = moves{number: n, blocks: 1}
		count := copy(a.moves[:], all)
		for _, m := range all[:count] {
			a.blocks = max(a.blocks, min(moveBlocks, (m.units+moveThreads-1)/moveThreads))
		}
		c.blocks = count * int(a.blocks)
		if err := c.launch(s); err != nil {
			return err
		}
		all = all[count:]
	}
	return nil
}

// rowMover moves rows between windows in a stream. n is the number of the exchange or gather.
type rowMover interface {
	// write writes rows into the windows of other ranks and then sets their words to n.
	write(s *driver.Stream, n uint32, all []move) error
	// read waits until the own words have reached n, and copies rows out of the own window.
	read(s *driver.Stream, n uint32, all []move) error
}

// moveCopies moves rows by copies and memory operations of the stream: no kernel waits, so ranks may share a GPU.
type moveCopies struct{}

func (moveCopies) write(s *driver.Stream, n uint32, all []move) error {
	for _, m := range all {
		if err := errors.Join(m.copy(s), s.WriteValue(m.word, n)); err != nil {
			return err
		}
	}
	return nil
}

func (moveCopies) read(s *driver.Stream, n uint32, all []move) error {
	for _, m := range all {
		if err := errors.Join(s.WaitValue(m.word, n), m.copy(s)); err != nil {
			return err
		}
	}
	return nil
}

func (m move) copy(s *driver.Stream) error {
	if m.units == 0 {
		return nil
	}
	return s.CopyOnDevice(m.to, m.from, moveUnit*int(m.units))
}
