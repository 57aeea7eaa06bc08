package roster

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
)

// Group is ranks [First.Rank, End) whose entries differ from First in rank, local rank, process and Extra alone. Their
// local ranks ascend by one.
type Group struct {
	First Member `json:"first"`
	End   int    `json:"end"`
}

// list is the roster. Ranks of one node differ in little, so what a rank reads of it grows with the nodes, apart from
// a number for each rank.
type list struct {
	Spans  []span            `json:"spans"`  // in the order of their ranks, without gaps
	PIDs   []int             `json:"pids"`   // by rank
	Extras []json.RawMessage `json:"extras"` // distinct values of Member.Extra
	Whole  Part              `json:"whole"`  // of all ranks together
}

// span is a Group without the Extras of its ranks.
type span struct {
	Group
	Extra int `json:"extra"` // an index, of the first rank; -1 for none
	Step  int `json:"step"`  // from the Extra of a rank to that of the next: 0, or 1 where ranks are bound to cores
}

// newList returns the list of members, by rank.
func newList(members []Member) *list {
	l, known := &list{}, map[string]int{}
	for r, m := range members {
		l.PIDs = append(l.PIDs, m.PID)
		s := span{Group: Group{First: m, End: r + 1}, Extra: -1}
		if m.Extra != nil {
			at, old := known[string(m.Extra)]
			if !old {
				at = len(l.Extras)
				known[string(m.Extra)] = at
				l.Extras = append(l.Extras, m.Extra)
			}
			s.Extra = at
		}
		s.First.Rank, s.First.Extra = r, nil
		if n := len(l.Spans); n == 0 || !l.Spans[n-1].extend(s) {
			l.Spans = append(l.Spans, s)
		}
	}
	return l
}

// extend adds the rank after the span, whose own span is t, if that fits. It reports whether it did.
func (s *span) extend(t span) bool {
	n, next := s.End-s.First.Rank, s.First
	next.Rank, next.LocalRank, next.PID = t.First.Rank, s.First.LocalRank+n, t.First.PID
	if !reflect.DeepEqual(next, t.First) {
		return false
	}
	if n == 1 && s.Extra >= 0 && t.Extra == s.Extra+1 {
		s.Step = 1
	}
	if s.Extra+n*s.Step != t.Extra {
		return false
	}
	s.End++
	return true
}

// encode returns the list as parseList takes it.
func (l *list) encode() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(l); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// parseList reads the list of a run of the given number of ranks.
func parseList(data []byte, ranks int) (*list, error) {
	l := &list{}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(z, MaxMessage))
	}
	if err == nil {
		err = json.Unmarshal(data, l)
	}
	if err != nil {
		return nil, fmt.Errorf("rank 0 sent a roster that cannot be read: %w", err)
	}
	next := 0
	for _, s := range l.Spans {
		n := s.End - next
		if n < 1 || s.First.Rank != next || s.Step < 0 || s.Step > 1 || s.Extra < s.Step-1 ||
			s.Extra+(n-1)*s.Step >= len(l.Extras) {
			return nil, fmt.Errorf("rank 0 sent a roster without an entry for rank %d", next)
		}
		next = s.End
	}
	if next != ranks || len(l.PIDs) != ranks {
		return nil, fmt.Errorf("rank 0 sent a roster of %d ranks and %d processes, want %d", next, len(l.PIDs), ranks)
	}
	return l, nil
}

// member returns the entry of a rank. Ranks whose Extra is equal share its memory.
func (l *list) member(rank int) Member {
	s := l.Spans[sort.Search(len(l.Spans), func(i int) bool { return l.Spans[i].End > rank })]
	m, n := s.First, rank-s.First.Rank
	m.Rank, m.LocalRank, m.PID = rank, m.LocalRank+n, l.PIDs[rank]
	if s.Extra >= 0 {
		m.Extra = l.Extras[s.Extra+n*s.Step]
	}
	return m
}

func (l *list) groups() []Group {
	groups := make([]Group, len(l.Spans))
	for i, s := range l.Spans {
		groups[i] = Group{First: l.member(s.First.Rank), End: s.End}
	}
	return groups
}

// GroupsOf returns the groups of members, by rank, as Comm.Groups does.
func GroupsOf(members []Member) []Group { return newList(members).groups() }
