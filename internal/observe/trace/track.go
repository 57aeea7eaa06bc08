package trace

// maxRecords bounds the records at either end of a track, and so the memory of a rank and the size of its part.
const maxRecords = 1 << 17

// track keeps the records of the first and of the last units. It takes no memory for units before it needs it, and none
// once it has dropped some.
type track struct {
	keep  uint32
	head  []record
	tail  []record // a ring; its length is a power of two or 0
	first int      // of the ring
	count int      // in the ring
}

func newTrack(keep int) track { return track{keep: uint32(keep)} }

// add adds a record. Units never fall.
func (t *track) add(r record) {
	if t.count == 0 && r.Unit < t.keep && len(t.head) < maxRecords {
		t.head = append(t.head, r)
		return
	}
	for t.count > 0 && t.tail[t.first].Unit+t.keep <= r.Unit || t.count == maxRecords {
		t.first = t.at(1)
		t.count--
	}
	if t.count == len(t.tail) {
		t.grow()
	}
	t.tail[t.at(t.count)] = r
	t.count++
}

// at returns the place in the ring of the record i after the first one.
func (t *track) at(i int) int { return (t.first + i) & (len(t.tail) - 1) }

// grow doubles the ring.
func (t *track) grow() {
	n := len(t.tail)
	ring := make([]record, min(max(64, 2*n), maxRecords))
	copy(ring, t.tail[t.first:])
	copy(ring[n-t.first:], t.tail[:t.first])
	t.tail, t.first = ring, 0
}

// records returns all records, in the order in which they were added.
func (t *track) records() []record {
	all := append(make([]record, 0, len(t.head)+t.count), t.head...)
	for i := range t.count {
		all = append(all, t.tail[t.at(i)])
	}
	return all
}

// dropped returns the number of units between the first and the last ones that are not there as a whole.
func (t *track) dropped() int {
	if t.count == 0 {
		return 0
	}
	from := uint32(0)
	if n := len(t.head); n > 0 {
		from = t.head[n-1].Unit + 1
	}
	return int(max(t.tail[t.first].Unit, from) - from)
}
