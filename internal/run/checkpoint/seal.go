package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// partReport is a rank's report to rank 0 about its part.
type partReport struct {
	Set   string `json:"set"`
	Host  string `json:"host"`
	Sum   string `json:"sum,omitempty"`
	Error string `json:"error,omitempty"`
}

// errRunEnded says that, by late norms, the run ended before the saved state, which is therefore useless.
var errRunEnded = errors.New("the run ended before")

// seal reads the reports of all ranks, writes the norms and seals the checkpoint. Only rank 0 calls it.
func (s *Saver) seal(m *Manifest, parts []partReport) error {
	var faults []error
	set := parts[0].Set
	for r, p := range parts {
		switch {
		case p.Error != "":
			faults = append(faults, fmt.Errorf("rank %d on %s: %s", r, p.Host, p.Error))
		case p.Set != set:
			faults = append(faults, fmt.Errorf("rank %d on %s wrote %s, want %s", r, p.Host, p.Set, set))
		}
		m.Parts[r].Sum = p.Sum
	}
	if len(faults) > 0 {
		return faults[0] // the others mostly have the same cause, such as one full disk
	}
	for r, p := range m.Parts {
		n, err := s.o.Store.Size(s.ctx, set, p.File)
		if err == nil && n != p.Bytes {
			err = fmt.Errorf("%d bytes, want %d", n, p.Bytes)
		}
		if err != nil {
			return fmt.Errorf("%s of rank %d, as rank 0 sees it: %w", p.File, r, err)
		}
	}
	norms, err := s.normsBefore(m.Sweeps)
	if err != nil {
		return err
	}
	err = s.o.Store.Write(s.ctx, set, m.Norms.File, m.Norms.Bytes, func(w io.Writer) (err error) {
		m.Norms.Sum, err = m.writePart(w, m.Norms, encodeNorms(norms))
		return err
	})
	if err != nil {
		return err
	}
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return s.o.Store.Seal(s.ctx, set, data)
}

// normsBefore waits until the norms of the first sweeps are known and returns them.
func (s *Saver) normsBefore(sweeps int) ([]float64, error) {
	n := s.o.Cadence.In(sweeps)
	for {
		s.mu.Lock()
		norms, done := s.norms, s.normsDone
		s.mu.Unlock()
		switch {
		case len(norms) >= n:
			return norms[:n], nil
		case done:
			return nil, errRunEnded
		}
		select {
		case <-s.normsNew:
		case <-s.ctx.Done():
			return nil, context.Cause(s.ctx)
		}
	}
}
