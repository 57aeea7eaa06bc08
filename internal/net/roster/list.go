package roster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"jacobi/internal/base/shm"
)

// list is the roster as rank 0 sends it and as every rank keeps it. Ranks of one node differ in little, so consecutive
// ranks that differ in their numbers alone are one span. What a rank reads of the list grows with the spans and not
// with the ranks: numbers of processes stay in the message until one is wanted.
type list struct {
	head   listHead
	places []place // distinct ones
	spans  []span  // in the order of their ranks, without gaps
	pids   []byte  // u32 of each rank, little-endian
}

// listHead is the part of a list that is sent as JSON.
type listHead struct {
	Kinds  []Member          `json:"kinds"`  // distinct entries, without what the other fields hold
	Extras []json.RawMessage `json:"extras"` // distinct values of Member.Extra
	Whole  Part              `json:"whole"`  // of all ranks together
}

// place is what ranks of a node have in common.
type place struct {
	host string
	node shm.Node
	size int // LocalSize
}

// span is ranks [lo, hi) that differ in rank, local rank, process and Extra alone. Their local ranks ascend by one.
type span struct {
	lo, hi      int
	local       int // of rank lo
	kind, place int // indexes
	extra       int // an index, of rank lo; -1 for none
	step        int // from the Extra of a rank to that of the next: 0, or 1 where ranks are bound to cores
}

// listMark is the first byte of a list as it is sent. No JSON begins with it.
const listMark = 1

// maxNumber is the largest number of a rank, a process or a user.
const maxNumber = math.MaxUint32

// indexer gives distinct values numbers from 0 on.
type indexer[K comparable] map[K]int

// at returns the number of key, and whether it is new.
func (x indexer[K]) at(key K) (number int, fresh bool) {
	number, known := x[key]
	if !known {
		number = len(x)
		x[key] = number
	}
	return number, !known
}

// newList returns the list of members, which are in the order of their ranks.
func newList(members []Member) (*list, error) {
	l := &list{}
	kinds, extras, places := indexer[string]{}, indexer[string]{}, indexer[place]{}
	for r, m := range members {
		for _, n := range []int{m.PID, m.LocalRank, m.LocalSize, m.Node.User} {
			if n < 0 || n > maxNumber {
				return nil, fmt.Errorf("%v, local rank %d of %d, user %d: numbers of 32 bits are allowed", m,
					m.LocalRank, m.LocalSize, m.Node.User)
			}
		}
		l.pids = binary.LittleEndian.AppendUint32(l.pids, uint32(m.PID))
		s, fresh := span{lo: r, hi: r + 1, local: m.LocalRank, extra: -1}, false
		if m.Extra != nil {
			if s.extra, fresh = extras.at(string(m.Extra)); fresh {
				l.head.Extras = append(l.head.Extras, m.Extra)
			}
		}
		at := place{m.Host, m.Node, m.LocalSize}
		if s.place, fresh = places.at(at); fresh {
			l.places = append(l.places, at)
		}
		m.Rank, m.LocalRank, m.LocalSize, m.PID, m.Extra = 0, 0, 0, 0, nil
		m.Host, m.Node = "", shm.Node{}
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		if s.kind, fresh = kinds.at(string(text)); fresh {
			l.head.Kinds = append(l.head.Kinds, m)
		}
		if n := len(l.spans); n == 0 || !l.spans[n-1].extend(s) {
			l.spans = append(l.spans, s)
		}
	}
	return l, nil
}

// extend adds the rank after the span, whose own span is t, if that fits. It reports whether it did.
func (s *span) extend(t span) bool {
	n := s.hi - s.lo
	if s.kind != t.kind || s.place != t.place || s.local+n != t.local {
		return false
	}
	if step := t.extra - s.extra; n == 1 && s.extra >= 0 && step == 1 {
		s.step = step
	}
	if s.extra+n*s.step != t.extra {
		return false
	}
	s.hi++
	return true
}

// encode returns the list as parseList takes it.
func (l *list) encode() ([]byte, error) {
	head, err := json.Marshal(l.head)
	if err != nil {
		return nil, err
	}
	b := appendBytes([]byte{listMark}, head)
	b = binary.AppendUvarint(b, uint64(len(l.places)))
	for _, p := range l.places {
		for _, text := range []string{p.host, p.node.Boot, p.node.PIDNamespace} {
			b = appendBytes(b, []byte(text))
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.node.User)), uint64(p.size))
	}
	b = binary.AppendUvarint(b, uint64(len(l.spans)))
	for _, s := range l.spans {
		for _, v := range []int{s.hi - s.lo, s.local, s.kind, s.place, s.extra + 1, s.step} {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	return append(b, l.pids...), nil
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// isList reports whether a message is a list; other messages are JSON.
func isList(data []byte) bool { return len(data) > 0 && data[0] == listMark }

// parseList reads the list of a run of the given number of ranks. The list keeps data.
func parseList(data []byte, ranks int) (*list, error) {
	l, err := readList(data, ranks)
	if err != nil {
		return nil, fmt.Errorf("rank 0 sent a roster %w", err)
	}
	return l, nil
}

func readList(data []byte, ranks int) (*list, error) {
	if !isList(data) {
		return nil, errors.New("in another format")
	}
	l, r := &list{}, reader{rest: data[1:]}
	if head := r.bytes(); r.err == nil {
		r.err = json.Unmarshal(head, &l.head)
	}
	for n := r.number(len(r.rest)); n > 0 && r.err == nil; n-- {
		p := place{host: string(r.bytes()), node: shm.Node{Boot: string(r.bytes()), PIDNamespace: string(r.bytes())}}
		p.node.User, p.size = r.number(maxNumber), r.number(maxNumber)
		l.places = append(l.places, p)
	}
	next := 0
	for n := r.number(len(r.rest)); n > 0 && r.err == nil; n-- {
		s := span{lo: next}
		s.hi, s.local = next+r.number(maxNumber), r.number(maxNumber)
		s.kind, s.place, s.extra, s.step = r.number(maxNumber), r.number(maxNumber), r.number(maxNumber)-1, r.number(1)
		if r.err == nil && (s.hi == s.lo || s.kind >= len(l.head.Kinds) || s.place >= len(l.places) ||
			s.extra < 0 && s.step != 0 || s.extra+(s.hi-s.lo-1)*s.step >= len(l.head.Extras)) {
			return nil, fmt.Errorf("without an entry for rank %d", s.lo)
		}
		l.spans, next = append(l.spans, s), s.hi
	}
	if r.err != nil {
		return nil, fmt.Errorf("that cannot be read: %w", r.err)
	}
	if next != ranks || len(r.rest) != 4*ranks {
		return nil, fmt.Errorf("of %d ranks and %d bytes of process numbers, want %d ranks", next, len(r.rest), ranks)
	}
	l.pids = r.rest
	return l, nil
}

// reader reads numbers and texts. After the first error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

var errShort = errors.New("it is cut off or has numbers that are too large")

func (r *reader) fail() {
	if r.err == nil {
		r.err = errShort
	}
}

// number reads a number of at most limit.
func (r *reader) number(limit int) int {
	v, n := binary.Uvarint(r.rest)
	if r.err != nil || n <= 0 || v > uint64(limit) {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) bytes() []byte {
	n := r.number(len(r.rest))
	if n > len(r.rest) { // the number itself took some
		r.fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// member returns the entry of a rank. Ranks whose Extra is equal share its memory.
func (l *list) member(rank int) Member {
	at := sort.Search(len(l.spans), func(i int) bool { return l.spans[i].hi > rank })
	return l.entry(l.spans[at], rank)
}

// entry returns the entry of a rank of a span.
func (l *list) entry(s span, rank int) Member {
	m, p := l.head.Kinds[s.kind], l.places[s.place]
	m.Rank, m.LocalRank, m.LocalSize = rank, s.local+rank-s.lo, p.size
	m.PID = int(binary.LittleEndian.Uint32(l.pids[4*rank:]))
	m.Host, m.Node = p.host, p.node
	if s.extra >= 0 {
		m.Extra = l.head.Extras[s.extra+(rank-s.lo)*s.step]
	}
	return m
}

// Group is ranks [First.Rank, End) whose entries differ from First in rank, local rank, process and Extra alone. Their
// local ranks ascend by one.
type Group struct {
	First Member
	End   int
}

func (l *list) groups() []Group {
	groups := make([]Group, len(l.spans))
	for i, s := range l.spans {
		groups[i] = Group{First: l.entry(s, s.lo), End: s.hi}
	}
	return groups
}

// GroupsOf returns the groups of members, which are in the order of their ranks, as Comm.Groups does.
func GroupsOf(members []Member) ([]Group, error) {
	members = slices.Clone(members)
	for r := range members {
		members[r].Rank = r
	}
	l, err := newList(members)
	if err != nil {
		return nil, err
	}
	return l.groups(), nil
}
