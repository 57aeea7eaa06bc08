package problem

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"jacobi/internal/base/parallel"
)

// blocks are hashes of a file by blocks of its rows, which whoever reads a block verifies. A block gets its hash when
// it is read for the first time, and has to have it whenever it is read again. The hashes find accidents, not
// forgeries: SHA-256 would take ten times as long where the processor has no instructions for it.
type blocks struct {
	mu   sync.Mutex
	sums []uint64 // by block; 0 for one that was not read
}

// errChanged is the error of a block that is not what it was.
var errChanged = errors.New("the file was changed while the run needs it")

// oneBlock returns the hash of a picture that is in memory.
func oneBlock(title string, data []byte) *blocks {
	return &blocks{sums: []uint64{sumOf(title, data)}}
}

// sumOf returns the hash of a block of values of a type. It is never 0.
func sumOf(values string, data []byte) uint64 {
	h := xxhash.New()
	h.WriteString(values) // writes to a hash never fail
	h.Write(data)
	return max(1, h.Sum64())
}

// verify takes the hash of block k, which must be the one that it had before.
func (b *blocks) verify(k int, sum uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sums[k] != 0 && b.sums[k] != sum {
		return errChanged
	}
	b.sums[k] = sum
	return nil
}

// unread returns the blocks from lo to hi-1 that were not read.
func (b *blocks) unread(lo, hi int) (list []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := lo; k < hi; k++ {
		if b.sums[k] == 0 {
			list = append(list, k)
		}
	}
	return list
}

// encoded returns the hashes of blocks lo to hi-1, each as 8 bytes.
func (b *blocks) encoded(lo, hi int) (data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sum := range b.sums[lo:hi] {
		data = binary.LittleEndian.AppendUint64(data, sum)
	}
	return data
}

// input is a file of the problem: an array that is read by blocks, or a picture, cells or the values of a side, which
// are in memory.
type input struct {
	name string // its key and its name, as in `problem.source "f.npy"`
	*blocks
	read func(k int) error // nil for what is in memory
}

// inputs returns the files of the problem.
func (p *Problem) inputs() (list []input) {
	add := func(key, text string, b *blocks, read func(int) error) {
		list = append(list, input{fmt.Sprintf("%s %q", key, text), b, read})
	}
	for _, q := range p.readable() {
		if n := q.file; n != nil {
			add(q.key, q.text, n.blocks, n.readBlock)
		} else if q.read != nil {
			add(q.key, q.text, q.read, nil)
		}
	}
	for _, s := range p.sides {
		if s.read != nil {
			add(s.key, s.text, s.read, nil)
		}
	}
	if f := p.fixed.picture; f != nil {
		add(p.fixed.key, p.fixed.text, f.blocks, nil)
	}
	if d := p.drawing; d != nil {
		add("problem.drawing", d.text, d.blocks, nil)
	}
	return list
}

// Sums are hashes of blocks of files, by the keys and names of these.
type Sums map[string][]byte

// Share returns the hashes of a rank's share of the blocks of all files. It reads those that were not read yet, on all
// cores, and stops when ctx ends. The shares of all ranks, in their order, are the hashes of whole files.
func (p *Problem) Share(ctx context.Context, rank, ranks int) (Sums, error) {
	share := Sums{}
	for _, in := range p.inputs() {
		n := len(in.sums)
		lo, hi := rank*n/ranks, (rank+1)*n/ranks
		missing := in.unread(lo, hi)
		err := parallel.Each(len(missing), func(i int) error {
			if err := ended(ctx); err != nil {
				return err
			}
			p.worked()
			return in.read(missing[i])
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		share[in.name] = in.encoded(lo, hi)
	}
	return share, nil
}

// Contents returns a hash of each file that the problem reads, by its key and name, as in `problem.source "f.npy"`. It
// reads the blocks that were not read yet.
func (p *Problem) Contents(ctx context.Context) (map[string]string, error) {
	whole, err := p.Share(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	contents := map[string]string{}
	for name, sums := range whole {
		contents[name] = rootOf(sums)
	}
	return contents, nil
}

// rootOf returns the hash of a file from those of all its blocks.
func rootOf(sums []byte) string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(sums)))
}

// Unite returns, on rank 0, the hashes of whole files from the shares of all ranks. They must be those of the files
// with which the run was planned; planned is what Contents has returned then. who names a rank.
func (p *Problem) Unite(ctx context.Context, shares []Sums, planned map[string]string, who func(rank int) string) (
	Sums, error) {
	united := Sums{}
	for _, in := range p.inputs() {
		var whole []byte
		for _, s := range shares {
			whole = append(whole, s[in.name]...)
		}
		if rootOf(whole) != planned[in.name] {
			return nil, p.differing(ctx, in, shares, planned[in.name], who)
		}
		united[in.name] = whole
	}
	return united, nil
}

// differing says how the shares of a file differ from what was planned. This rank reads all of its file for that.
func (p *Problem) differing(ctx context.Context, in input, shares []Sums, planned string,
	who func(rank int) string) error {
	whole, err := p.Share(ctx, 0, 1)
	if err != nil {
		return err
	}
	own, n := whole[in.name], len(in.sums)
	if rootOf(own) != planned {
		return fmt.Errorf("%s: it is not the file with which the run was planned: it was changed since then, or is "+
			"another one for %s", in.name, who(0))
	}
	for rank, s := range shares {
		lo, hi := 8*(rank*n/len(shares)), 8*((rank+1)*n/len(shares))
		if !bytes.Equal(s[in.name], own[lo:hi]) {
			return fmt.Errorf("%s: %s and %s read different files; a file must be the same for all, and stay as it is",
				in.name, who(0), who(rank))
		}
	}
	return fmt.Errorf("%s: %w", in.name, errChanged)
}

// Adopt takes the hashes that hold for all ranks. What this rank has read must have them, and so must all that it reads
// from now on.
func (p *Problem) Adopt(united Sums) error {
	for _, in := range p.inputs() {
		sums := united[in.name]
		if len(sums) != 8*len(in.sums) {
			return fmt.Errorf("%s: %d bytes of hashes, want %d", in.name, len(sums), 8*len(in.sums))
		}
		for k := range in.sums {
			if err := in.verify(k, binary.LittleEndian.Uint64(sums[8*k:])); err != nil {
				return fmt.Errorf("%s: %w", in.name, err)
			}
		}
	}
	return nil
}
