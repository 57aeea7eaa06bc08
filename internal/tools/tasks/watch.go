package tasks

import (
	"time"

	"jacobi/internal/tools/soak"
)

// Times between readings of a GPU, and between the words of rank 0 in a long step.
const (
	healthInterval  = time.Second
	workingInterval = 5 * time.Second
)

// watch reads the health of a GPU while it sweeps and, on rank 0, tells how far a long step is.
type watch struct {
	s          *soaking
	result     *soak.Rank // gets the readings; nil for none
	working    soak.Working
	read, told time.Time // last
}

func newWatch(s *soaking, result *soak.Rank, working soak.Working) *watch {
	return &watch{s: s, result: result, working: working, told: time.Now()}
}

// see is called before each pass. The first reading comes before the second pass, when the device is at work.
func (w *watch) see(sweeps int) {
	now := time.Now()
	if sweeps > 0 && w.result != nil && w.s.readings != nil && now.Sub(w.read) >= healthInterval {
		w.read = now
		w.result.Health = w.s.health(w.result.Health)
	}
	if w.s.Comm.Self().Rank == 0 && now.Sub(w.told) >= workingInterval {
		w.told = now
		w.working.Sweeps = sweeps
		w.s.tell(soak.Event{Event: "working", Working: &w.working})
	}
}

// health adds a reading. One that fails leaves h as it is: the GPU itself fails soon if it is lost.
func (s *soaking) health(h *soak.Health) *soak.Health {
	r, err := s.readings.Health(s.device.UUID)
	if err != nil {
		return h
	}
	return h.With(r)
}
