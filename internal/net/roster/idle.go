package roster

import (
	"context"
	"fmt"
)

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
