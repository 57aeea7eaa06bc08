package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"jacobi/internal/net/wire"
)

// releaseTimeout is how long rank 0 waits at the end of a barrier for ranks to acknowledge its end. Ranks that do not
// may have left.
const releaseTimeout = 2 * time.Second

// Send sends data, at most MaxMessage bytes, to rank to, and returns when a Recv there has taken it. Messages with one
// tag arrive in order. A tag has up to 200 bytes; reuse tags, since each takes memory for the rest of the run. Like
// all waits of a Comm, Send ends with ctx, which should have a deadline, and with the comm's context. The message may
// then still arrive.
func (t *Comm) Send(ctx context.Context, to int, tag string, data []byte) error {
	if err := t.checkLine(to, tag); err != nil {
		return fmt.Errorf("send %q: %w", tag, err)
	}
	if len(data) > MaxMessage {
		return fmt.Errorf("send %q to rank %d: %d bytes, at most %d go in a message", tag, to, len(data), MaxMessage)
	}
	ctx, cancel := t.within(ctx)
	defer cancel()
	if err := t.post.send(ctx, to, t.scope+tag, data); err != nil {
		return waitError(fmt.Sprintf("send %q", tag), to, err)
	}
	return nil
}

// Recv waits for the next message with tag from rank from. Two Recvs with one tag from one rank must not run at the
// same time.
func (t *Comm) Recv(ctx context.Context, from int, tag string) ([]byte, error) {
	if err := t.checkLine(from, tag); err != nil {
		return nil, fmt.Errorf("receive %q: %w", tag, err)
	}
	ctx, cancel := t.within(ctx)
	defer cancel()
	data, err := t.post.recv(ctx, from, t.scope+tag)
	if err != nil {
		return nil, waitError(fmt.Sprintf("receive %q", tag), from, err)
	}
	return data, nil
}

// Stream returns this end of the stream to another rank under a tag of its own, for messages in turns: each end
// acknowledges with what it sends next. Up to window messages, of at most a chunk each, may be under way. handle is
// called with those that arrive, one at a time, and keeps all other messages to this rank waiting meanwhile. Both ranks
// open the stream with the same window before either sends. It ends with the comm, or with Stop.
func (t *Comm) Stream(peer int, tag string, window int, handle func([]byte)) (*wire.Stream, error) {
	if err := t.checkLine(peer, tag); err != nil {
		return nil, fmt.Errorf("open %q: %w", tag, err)
	}
	return t.post.open(line{peer, t.scope + tag}, window, handle)
}

func (t *Comm) checkLine(peer int, tag string) error {
	if peer < 0 || peer >= t.working || peer == t.self.Rank {
		return fmt.Errorf("rank %d is not another rank of a run of %d", peer, t.working)
	}
	if len(tag) > maxTag {
		return fmt.Errorf("a tag of %d bytes, at most %d are allowed", len(tag), maxTag)
	}
	return nil
}

func waitError(op string, peer int, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &TimeoutError{Op: op, Ranks: []int{peer}}
	}
	return fmt.Errorf("%s, rank %d: %w", op, peer, err)
}

// Barrier returns when all ranks have called it with the same name.
func (t *Comm) Barrier(ctx context.Context, name string) error {
	if _, err := t.gather(ctx, "barrier", name, nil); err != nil {
		return err
	}
	if t.self.Rank == 0 {
		return t.release(ctx, "barrier", name, 1, t.working, nil, releaseTimeout)
	}
	_, err := t.recvTold(ctx, "barrier", name)
	return err
}

// release sends data, on rank 0, to ranks lo to hi-1, which wait for it in op, however long that takes. Then it waits
// for acknowledgements, for patience at most: a rank that leaves without one is no error.
func (t *Comm) release(ctx context.Context, op, name string, lo, hi int, data []byte, patience time.Duration) error {
	ctx, cancel := t.within(ctx)
	defer cancel()
	call, tag := fmt.Sprintf("%s %q", op, name), op+">"+name
	err := each(ctx, call, lo, hi, func(ctx context.Context, rank int) error {
		if err := t.post.hand(ctx, rank, t.scope+tag, data); err != nil {
			return waitError("send "+strconv.Quote(tag), rank, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, patience)
	defer cancel()
	err = each(ctx, call, lo, hi, func(ctx context.Context, rank int) error {
		if err := t.post.flush(ctx, rank, t.scope+tag); err != nil {
			return waitError("send "+strconv.Quote(tag), rank, err)
		}
		return nil
	})
	if _, late := errors.AsType[*TimeoutError](err); late {
		return nil
	}
	return err
}

// Gather sends the data of all ranks to rank 0, which gets them by rank. The other ranks get nil.
func (t *Comm) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	return t.gather(ctx, "gather", name, data)
}

func (t *Comm) gather(ctx context.Context, op, name string, data []byte) ([][]byte, error) {
	tag := op + "<" + name
	if t.self.Rank != 0 {
		if err := t.Send(ctx, 0, tag, data); err != nil {
			return nil, fmt.Errorf("%s %q: %w", op, name, err)
		}
		return nil, nil
	}
	all := make([][]byte, t.working)
	all[0] = data
	err := each(ctx, fmt.Sprintf("%s %q", op, name), 1, t.working, func(ctx context.Context, rank int) (err error) {
		all[rank], err = t.Recv(ctx, rank, tag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Broadcast gives all ranks the data of rank 0. It ignores the data of the other ranks.
func (t *Comm) Broadcast(ctx context.Context, name string, data []byte) ([]byte, error) {
	if t.self.Rank != 0 {
		return t.recvTold(ctx, "broadcast", name)
	}
	return data, each(ctx, fmt.Sprintf("broadcast %q", name), 1, t.working, func(ctx context.Context, rank int) error {
		return t.Send(ctx, rank, "broadcast>"+name, data)
	})
}

func (t *Comm) recvTold(ctx context.Context, op, name string) ([]byte, error) {
	data, err := t.Recv(ctx, 0, op+">"+name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", op, name, err)
	}
	return data, nil
}

// each runs f for ranks lo to hi-1 at once. Ranks that time out are all named in its error. Any other error ends the
// calls that still run.
func each(ctx context.Context, op string, lo, hi int, f func(ctx context.Context, rank int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	errs := make([]error, hi-lo)
	for i := range errs {
		wg.Go(func() {
			errs[i] = f(ctx, lo+i)
			if _, late := errors.AsType[*TimeoutError](errs[i]); errs[i] != nil && !late {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	var missing []int
	for _, err := range errs {
		late, ok := errors.AsType[*TimeoutError](err)
		if err != nil && !ok {
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		}
		if ok {
			missing = slices.Concat(missing, late.Ranks)
		}
	}
	if missing != nil {
		return &TimeoutError{Op: op, Ranks: missing}
	}
	return nil
}

// Decide gives all ranks what decide makes, on rank 0, of the data of all ranks, by rank. All ranks call it.
func (t *Comm) Decide(ctx context.Context, name string, data []byte,
	decide func(parts [][]byte) ([]byte, error)) ([]byte, error) {
	parts, err := t.Gather(ctx, name, data)
	if err != nil {
		return nil, err
	}
	if t.self.Rank == 0 {
		if data, err = decide(parts); err != nil {
			return nil, err
		}
	}
	return t.Broadcast(ctx, name, data)
}

// Pool gives all ranks the data of all of them, joined by rank. It returns none if that is longer than a message, or if
// no rank has any. All ranks call it.
func (t *Comm) Pool(ctx context.Context, name string, data []byte) ([]byte, error) {
	data = append([]byte{1}, data...) // none is empty
	if len(data) > MaxMessage/t.self.Size {
		data = nil
	}
	return t.Decide(ctx, name, data, func(parts [][]byte) (whole []byte, err error) {
		for _, part := range parts {
			if len(part) == 0 {
				return nil, nil
			}
			whole = append(whole, part[1:]...)
		}
		return whole, nil
	})
}

// DecideOn is Decide for values that travel as JSON.
func DecideOn[In, Out any](ctx context.Context, t *Comm, name string, mine In,
	decide func(all []In) (Out, error)) (out Out, err error) {
	all, err := GatherOn(ctx, t, name, mine)
	if err == nil && t.self.Rank == 0 {
		out, err = decide(all)
	}
	if err != nil {
		return out, err
	}
	return BroadcastOn(ctx, t, name, out)
}

// GatherOn is Gather for values that travel as JSON.
func GatherOn[T any](ctx context.Context, t *Comm, name string, mine T) (all []T, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	parts, err := t.Gather(ctx, name, data)
	if err != nil || t.self.Rank != 0 {
		return nil, err
	}
	all = make([]T, len(parts))
	for rank, part := range parts {
		if err := json.Unmarshal(part, &all[rank]); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank, err)
		}
	}
	return all, nil
}

// BroadcastOn is Broadcast for a value that travels as JSON. The values of other ranks than rank 0 do not count.
func BroadcastOn[T any](ctx context.Context, t *Comm, name string, mine T) (told T, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return told, err
	}
	if data, err = t.Broadcast(ctx, name, data); err != nil {
		return told, err
	}
	if err := json.Unmarshal(data, &told); err != nil {
		return told, fmt.Errorf("%s from rank 0: %w", name, err)
	}
	return told, nil
}

// SetWorking makes the first n ranks the working ones, which alone are the peers and members of this comm's calls. The
// others are idle: they give signs of life and wait in AwaitEnd. All ranks call it with the same n, after Join and
// before any other call.
func (t *Comm) SetWorking(n int) { t.working = min(n, t.self.Size) }

const endOp = "idle"

// End ends AwaitEnd with the same name on the idle ranks, which it gives data. It does nothing on ranks other than 0.
func (t *Comm) End(ctx context.Context, name string, data []byte) error {
	if t.self.Rank != 0 || t.working == t.self.Size {
		return nil
	}
	return t.release(ctx, endOp, name, t.working, t.self.Size, data, releaseTimeout)
}

// AwaitEnd returns, on an idle rank, the data of End. It ends with ctx and the comm's context; signs of life bound it.
func (t *Comm) AwaitEnd(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := t.within(ctx)
	defer cancel()
	data, err := t.post.recv(ctx, 0, t.scope+endOp+">"+name)
	if err != nil {
		return nil, waitError(fmt.Sprintf("wait for %q", name), 0, err)
	}
	return data, nil
}
