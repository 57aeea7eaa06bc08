package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// list is the roster as rank 0 sends it. Ranks of one node differ in little, so each distinct entry is sent once, and
// of every rank its own numbers alone: some 20 bytes a rank in place of 800.
type list struct {
	Kinds     []Member          `json:"kinds"`  // distinct entries, without what the other columns hold
	Extras    []json.RawMessage `json:"extras"` // distinct values of Member.Extra
	Kind      column[int]       `json:"kind"`   // by rank: an index of Kinds
	Extra     column[int]       `json:"extra"`  // by rank: an index of Extras, -1 for none
	LocalRank column[int]       `json:"local_rank"`
	PID       column[int]       `json:"pid"`
	MaxAbs    column[float64]   `json:"max_abs"`
	MaxSource column[float64]   `json:"max_source"`
	Fixed     column[int64]     `json:"fixed"`
}

// column has a value for each rank. In JSON it is one value if all are equal.
type column[T comparable] []T

// MarshalJSON implements json.Marshaler.
func (c column[T]) MarshalJSON() ([]byte, error) {
	for _, v := range c {
		if v != c[0] {
			return json.Marshal([]T(c))
		}
	}
	return json.Marshal([]T(c[:min(1, len(c))]))
}

// spread repeats the value of a column in which all ranks have the same.
func spread[T comparable](c *column[T], ranks int) error {
	switch {
	case len(*c) == ranks:
		return nil
	case len(*c) != 1:
		return fmt.Errorf("a column for %d ranks, want %d", len(*c), ranks)
	}
	*c = slices.Repeat(*c, ranks)
	return nil
}

// newList returns the list of members, which are in the order of their ranks.
func newList(members []Member) (*list, error) {
	l := &list{}
	kinds, extras := map[string]int{}, map[string]int{}
	for _, m := range members {
		extra := -1
		if m.Extra != nil {
			at, known := extras[string(m.Extra)]
			if !known {
				at = len(l.Extras)
				extras[string(m.Extra)], l.Extras = at, append(l.Extras, m.Extra)
			}
			extra = at
		}
		l.Extra, l.LocalRank, l.PID = append(l.Extra, extra), append(l.LocalRank, m.LocalRank), append(l.PID, m.PID)
		l.MaxAbs, l.MaxSource = append(l.MaxAbs, m.MaxAbs), append(l.MaxSource, m.MaxSource)
		l.Fixed = append(l.Fixed, m.Fixed)
		m.Rank, m.LocalRank, m.PID, m.MaxAbs, m.MaxSource, m.Fixed, m.Extra = 0, 0, 0, 0, 0, 0, nil
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		kind, known := kinds[string(text)]
		if !known {
			kind = len(l.Kinds)
			kinds[string(text)], l.Kinds = kind, append(l.Kinds, m)
		}
		l.Kind = append(l.Kind, kind)
	}
	return l, nil
}

// members returns the entries of a run of the given number of ranks. Ranks whose Extra is equal share its memory.
func (l *list) members(ranks int) ([]Member, error) {
	err := errors.Join(spread(&l.Kind, ranks), spread(&l.Extra, ranks), spread(&l.LocalRank, ranks),
		spread(&l.PID, ranks), spread(&l.MaxAbs, ranks), spread(&l.MaxSource, ranks), spread(&l.Fixed, ranks))
	if err != nil {
		return nil, fmt.Errorf("rank 0 sent a roster with %w", err)
	}
	members := make([]Member, ranks)
	for r := range members {
		kind, extra := l.Kind[r], l.Extra[r]
		if kind < 0 || kind >= len(l.Kinds) || extra < -1 || extra >= len(l.Extras) {
			return nil, fmt.Errorf("rank 0 sent a roster without an entry for rank %d", r)
		}
		m := l.Kinds[kind]
		if m.Rank, m.LocalRank, m.PID = r, l.LocalRank[r], l.PID[r]; extra >= 0 {
			m.Extra = l.Extras[extra]
		}
		m.MaxAbs, m.MaxSource, m.Fixed = l.MaxAbs[r], l.MaxSource[r], l.Fixed[r]
		members[r] = m
	}
	return members, nil
}
