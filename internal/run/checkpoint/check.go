package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"jacobi/configs"
)

// CheckResume refuses a directory from which a run of p cannot resume. It reads manifests and norms, but no
// rows.
func CheckResume(ctx context.Context, dir string, p Problem, s configs.Solver) error {
	store, only, err := Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	found, faults, err := List(ctx, store, only)
	if err != nil {
		return err
	}
	if len(found) == 0 && len(faults) > 0 {
		return fmt.Errorf("no checkpoint is intact: %s", strings.Join(faults, "; "))
	}
	if len(found) == 0 {
		return errors.New("there is no checkpoint")
	}
	if err := found[0].CheckProblem(p); err != nil {
		return err
	}
	norms, err := readNorms(ctx, store, found[0])
	if err != nil {
		return nil // the ranks report the fault and fall back to an older checkpoint
	}
	return found[0].CheckEnd(s, norms)
}

// CheckDir refuses a directory in which a run of p cannot keep its checkpoints: one that cannot be written,
// is too small for keep checkpoints of the given number of bytes, or has checkpoints of another problem. It creates a
// missing directory if create is set, and accepts it otherwise.
func CheckDir(ctx context.Context, dir string, p Problem, keep int, bytes int64, create bool) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && !create {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot be created: %w", err)
	}
	probe, err := os.MkdirTemp(dir, ".probe-*"+unsealedSuffix)
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return fmt.Errorf("cannot be written: %w", err)
	}
	found, _, err := List(ctx, NewDir(dir), "")
	if err != nil {
		return err
	}
	var existing int64
	for _, f := range found {
		if err := f.CheckProblem(p); err != nil {
			return err
		}
		existing += f.bytes()
	}
	return checkSpace(dir, existing, keep, bytes)
}

// checkSpace refuses a file system without room for keep checkpoints and the one being written. The space of existing
// checkpoints counts as free, because new ones replace them.
func checkSpace(dir string, existing int64, keep int, each int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	have, need := existing+int64(st.Bavail)*st.Bsize, int64(keep+1)*each
	if need > have {
		return fmt.Errorf("%s (%d bytes) are needed for checkpoint.keep %d and one under way, and %s (%d bytes) are "+
			"available", humanize.IBytes(uint64(need)), need, keep,
			humanize.IBytes(uint64(have)), have)
	}
	return nil
}

// bytes returns the size of the parts and the norms.
func (m *Manifest) bytes() int64 {
	n := m.Norms.Bytes
	for _, p := range m.Parts {
		n += p.Bytes
	}
	return n
}
