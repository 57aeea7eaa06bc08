package progress

import (
	"math"
	"time"
)

// recent is the time over which a speed is measured. Earlier sweeps say little about the speed of later ones.
const recent = 5 * time.Second

// speed measures the recent speed of a run.
type speed struct{ marks []mark }

// mark records the number of sweeps done at a time of the run's clock, which does not count while the run is stopped.
type mark struct {
	at     time.Duration
	sweeps int
}

// add adds a mark. Of the marks older than recent it keeps only the newest.
func (s *speed) add(at time.Duration, sweeps int) {
	s.marks = append(s.marks, mark{at, sweeps})
	for len(s.marks) > 2 && at-s.marks[1].at >= recent {
		s.marks = s.marks[1:]
	}
}

// timeFor estimates the time for further sweeps; 0 if it is unknown.
func (s *speed) timeFor(sweeps int) time.Duration {
	if len(s.marks) < 2 || sweeps <= 0 {
		return 0
	}
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.sweeps <= first.sweeps {
		return 0
	}
	t := float64(last.at-first.at) / float64(last.sweeps-first.sweeps) * float64(sweeps)
	return time.Duration(min(t, math.MaxInt64/2))
}
