package solver

import "context"

// Gather implements Exchange. The ranks are a chain: in step k each rank passes on to the rank below what the k-th rank
// above has computed, and to the rank above what the k-th rank below has.
func (x *HostExchange) Gather(ctx context.Context, r BlockRows) error {
	var all [][]byte
	most := 0
	for _, n := range r.BlockBytes() {
		all, most = append(all, make([]byte, n)), max(most, n)
	}
	if err := r.CopyBlock(ctx, all[x.options.Rank]); err != nil {
		return err
	}
	for k := 1; k < len(all); k++ {
		for at := 0; at < most; at += x.options.Most {
			if err := x.pass(ctx, all, k, at); err != nil {
				return err
			}
		}
	}
	for rank, block := range all {
		if err := r.SetBlock(ctx, rank, block); err != nil {
			return err
		}
	}
	return nil
}

// pass does the part of step k that begins at byte at of each block.
func (x *HostExchange) pass(ctx context.Context, all [][]byte, k, at int) error {
	own := x.options.Rank
	part := func(rank int) []byte {
		if rank < 0 || rank >= len(all) || at >= len(all[rank]) {
			return nil
		}
		return all[rank][at:min(len(all[rank]), at+x.options.Most)]
	}
	var out, in [2][]byte
	if own > 0 {
		out[Top], in[Top] = part(own+k-1), part(own-k)
	}
	if own < len(all)-1 {
		out[Bottom], in[Bottom] = part(own-k+1), part(own+k)
	}
	send, recv := [2]int{len(out[0]), len(out[1])}, [2]int{len(in[0]), len(in[1])}
	if err := x.post(ctx, send, recv, func(side Side, dst []byte) error {
		copy(dst, out[side])
		return nil
	}); err != nil {
		return err
	}
	return x.wait(ctx, send, recv, func(side Side, src []byte) error {
		copy(in[side], src)
		return nil
	})
}
