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

	"github.com/nats-io/nats.go"

	"jacobi/configs"
	"jacobi/solver"
)

// Open returns the store at a place (see configs.Checkpoint) and, if the place is the directory of a single set, the
// name of that. A bucket is reached over conn, which may be nil for directories.
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

// Found is a checkpoint whose manifest is in order. Its parts may still be broken.
type Found struct {
	Set string
	Manifest
}

// Faults are sets that cannot be used, with the reason, for a user to read.
type Faults []string

// List returns the sets of a place whose manifests are in order, the newest first, and what is wrong with the others.
func List(ctx context.Context, s Store, only string) ([]Found, Faults, error) {
	sets := []string{only}
	if only == "" {
		var err error
		if sets, err = s.Sets(ctx); err != nil {
			return nil, nil, fmt.Errorf("checkpoints in %s: %w", s, err)
		}
	}
	var found []Found
	var faults Faults
	for _, set := range sets {
		m, err := manifest(ctx, s, set)
		if errors.Is(err, os.ErrNotExist) {
			continue // pruned meanwhile
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

func manifest(ctx context.Context, s Store, set string) (Manifest, error) {
	data, err := s.Manifest(ctx, set)
	if err != nil {
		return Manifest{}, err
	}
	return DecodeManifest(data)
}

// CheckFields says whether a run with these keys may go on from m; the error names the key that differs and both
// values.
func (m *Manifest) CheckFields(fields map[string]string) error {
	if maps.Equal(m.Fields, fields) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if theirs, ok := m.Fields[key]; !ok || theirs != fields[key] {
			return fmt.Errorf("%s is %q here and %q in the checkpoint, which is of another problem", key, fields[key],
				theirs)
		}
	}
	return errors.New("the checkpoint is of another problem")
}

// CheckEnd says whether a run with this tolerance and max_iterations would have come as far as the checkpoint. norms
// are those of all sweeps before; nil if they are not known.
func (m *Manifest) CheckEnd(s configs.Solver, norms []float64) error {
	if s.MaxIterations < m.Sweeps {
		return fmt.Errorf("solver.max_iterations %d: the checkpoint has %d sweeps behind it", s.MaxIterations, m.Sweeps)
	}
	rule := solver.StopRule{Tolerance: s.Tolerance}
	for i, norm := range norms {
		if reason := rule.Add(norm); reason != "" && i+2 < m.Sweeps {
			return fmt.Errorf("solver.tolerance %g: the run would have ended (%s) after %d sweeps, "+
				"and the checkpoint has %d behind it", s.Tolerance, reason, i+2, m.Sweeps)
		}
	}
	return nil
}
