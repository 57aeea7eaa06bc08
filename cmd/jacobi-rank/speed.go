package main

import (
	"math"
	"time"
)

// recent is over how long a speed is taken: what happened before does not tell how long the rest will take.
const recent = 5 * time.Second

// speed is how fast a run has swept of late.
type speed struct{ marks []mark }

// mark is when a run had done so many sweeps.
type mark struct {
	at     time.Time
	sweeps int
}

// add takes a mark. The newest mark that is older than recent stays.
func (s *speed) add(at time.Time, sweeps int) {
	s.marks = append(s.marks, mark{at, sweeps})
	for len(s.marks) > 2 && at.Sub(s.marks[1].at) >= recent {
		s.marks = s.marks[1:]
	}
}

// timeFor returns how long so many sweeps will take; 0 where that is not known.
func (s *speed) timeFor(sweeps int) time.Duration {
	if len(s.marks) < 2 || sweeps <= 0 {
		return 0
	}
	first, last := s.marks[0], s.marks[len(s.marks)-1]
	if last.sweeps <= first.sweeps {
		return 0
	}
	t := float64(last.at.Sub(first.at)) / float64(last.sweeps-first.sweeps) * float64(sweeps)
	return time.Duration(min(t, math.MaxInt64/2))
}
