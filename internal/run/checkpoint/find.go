package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/internal/observe/output"
	"jacobi/solver"
	"jacobi/solver/methods"
)

// Open returns the store at a place (see configs.Checkpoint). If the place is the directory of a single set, the store
// is its parent and only is the name of the set. A bucket is reached over conn, which may be nil for directories.
func Open(ctx context.Context, place string, conn *nats.Conn) (s Store, only string, err error) {
	dir, bucket := configs.SplitPlace(place)
	if bucket != "" {
		if conn == nil {
			return nil, "", fmt.Errorf("bucket %q: a rank without a NATS server cannot reach it; started by the "+
				"launcher it can", bucket)
		}
		b, err := OpenBucket(ctx, conn, bucket)
		if err != nil {
			return nil, "", err
		}
		return b, "", nil
	}
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); err != nil {
		return NewDir(dir), "", nil
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, "", err
	}
	return NewDir(filepath.Dir(dir)), filepath.Base(dir), nil
}

// ErrSingle refuses the directory of a single set as the place where a run saves its state: the run would write beside
// the set, and later remove it.
var ErrSingle = errors.New("must be a directory of checkpoints; with " + manifestFile + " it is one checkpoint, " +
	"which only checkpoint.resume takes")

// Found is a checkpoint with a valid manifest. Its parts may still be broken.
type Found struct {
	Set string
	Manifest
}

// noneIntact is the error of a place without a set that can be used; faults say why those that are there cannot.
func noneIntact(faults []string) error {
	if len(faults) == 0 {
		return errors.New("there is no checkpoint")
	}
	return fmt.Errorf("no checkpoint is intact: %s", strings.Join(faults, "; "))
}

// Newest returns the newest set at a place, which is that of Open; false if there is none that can be read.
func Newest(ctx context.Context, place string, conn *nats.Conn) (newest Found, ok bool) {
	store, only, err := Open(ctx, place, conn)
	if err != nil {
		return newest, false
	}
	found, _, err := List(ctx, store, only)
	if err != nil || len(found) == 0 {
		return newest, false
	}
	return found[0], true
}

// List returns the sets of a place with valid manifests, the newest first, and says of the others why they cannot be
// used. It looks only at the set called only, unless that is empty.
func List(ctx context.Context, s Store, only string) (found []Found, faults []string, err error) {
	sets := []string{only}
	if only == "" {
		if sets, err = s.Sets(ctx); err != nil {
			return nil, nil, fmt.Errorf("checkpoints in %s: %w", s, err)
		}
	}
	for _, set := range sets {
		var m Manifest
		data, err := s.Manifest(ctx, set)
		if err == nil {
			m, err = DecodeManifest(data)
		}
		if errors.Is(err, os.ErrNotExist) {
			continue // removed since Sets listed it
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", set, err))
			continue
		}
		found = append(found, Found{set, m})
	}
	slices.SortFunc(found, func(a, b Found) int { return cmp.Compare(b.Serial, a.Serial) })
	return found, faults, nil
}

// CheckProblem fails unless a run of p may resume from m. The error names a key that differs and both values, or a file
// that has changed.
func (m *Manifest) CheckProblem(p Problem) error {
	if !maps.Equal(m.Fields, p.Fields) {
		return m.differing(p.Fields)
	}
	for _, file := range slices.Sorted(maps.Keys(p.Contents)) {
		if theirs, ok := m.Contents[file]; ok && theirs != p.Contents[file] {
			return fmt.Errorf("%s: the file has changed since the checkpoint was written", file)
		}
	}
	if m.Areas != p.Areas {
		return errors.New("the checkpoint is of a version of the program with other rules for the edges of areas " +
			"and for fixed points")
	}
	if m.Cycles != p.Cycles {
		return errors.New("the checkpoint is of a version of the program whose cycles give other bits")
	}
	return nil
}

// differing returns an error that names a key in which fields differ from those of m.
func (m *Manifest) differing(fields map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch theirs, ok := m.Fields[key]; {
		case !ok:
			return fmt.Errorf("this run sets %s to %q, the checkpoint does not set it", key, fields[key])
		case theirs != fields[key]:
			return fmt.Errorf("the checkpoint sets %s to %q, this run to %q", key, theirs, fields[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Fields)) {
		if _, ok := fields[key]; !ok {
			return fmt.Errorf("the checkpoint sets %s to %q, this run does not set it", key, m.Fields[key])
		}
	}
	return errors.New("the checkpoint is of another problem")
}

// Choose returns c with the method and the type of the run that wrote m, unless the user has named others.
func (m *Manifest) Choose(c configs.Config) configs.Config {
	method := cmp.Or(m.Fields["solver.method"], methods.Unnamed)
	if _, ok := methods.Find(method); !ok {
		return c // CheckFields names the difference
	}
	return c.Continue(method, m.Fields["grid.dtype"])
}

// CheckEnd fails if a run with this tolerance and max_iterations would have ended before the checkpoint. norms are the
// norms of all sweeps before the checkpoint, or nil if they are not known.
func (m *Manifest) CheckEnd(s configs.Solver, norms []float64) error {
	if s.MaxIterations < m.Sweeps {
		return fmt.Errorf("solver.max_iterations %d: the checkpoint already has %d %ss", s.MaxIterations, m.Sweeps,
			s.Step())
	}
	if every := max(1, m.NormStride); every != max(1, s.NormEvery) {
		return fmt.Errorf("solver.norm_every %d: it is %d in the checkpoint, which has norms of other sweeps",
			s.NormEvery, every)
	}
	goal := solver.Goal{Tolerance: s.Tolerance, Relative: s.RelativeTolerance, Base: m.Base}
	i, met := goal.MetBy(norms)
	if end := m.norms().Sweep(i) + s.Entry().Delay; met && end < m.Sweeps {
		return fmt.Errorf("solver.tolerance %g, solver.relative_tolerance %g: the run would have ended (%s) "+
			"after %d %ss, and the checkpoint already has %d", s.Tolerance, s.RelativeTolerance, solver.Converged,
			end, s.Step(), m.Sweeps)
	}
	return nil
}

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
	if len(found) == 0 {
		return noneIntact(faults)
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
// is too small for keep checkpoints of the given number of bytes, is a checkpoint itself, or has checkpoints of another
// problem. It creates a missing directory if create is set, and otherwise checks that this is possible.
func CheckDir(ctx context.Context, dir string, p Problem, keep int, bytes int64, create bool) error {
	store, only, err := Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	if only != "" {
		return ErrSingle
	}
	exists, err := output.CheckParent(dir)
	if create {
		exists, err = true, os.MkdirAll(dir, 0o777)
	}
	if err != nil {
		return fmt.Errorf("cannot be created: %w", err)
	}
	if !exists {
		return checkSpace(dir, 0, keep, bytes)
	}
	probe, err := os.MkdirTemp(dir, ".probe-*"+unsealedSuffix)
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return fmt.Errorf("cannot be written: %w", err)
	}
	found, _, err := List(ctx, store, "")
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
	available, err := output.AvailableBytes(dir)
	if err != nil {
		return err
	}
	have, need := existing+available, int64(keep+1)*each
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
