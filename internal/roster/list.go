package roster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// list is the roster as rank 0 sends it and as every rank keeps it. Ranks of one node differ in little, so each
// distinct entry is held once, and of every rank its own numbers alone: 6 bytes a rank in a message, in place of 800.
type list struct {
	Kinds     []Member          `json:"kinds"`  // distinct entries, without what the other fields hold
	Extras    []json.RawMessage `json:"extras"` // distinct values of Member.Extra
	Kind      column            `json:"kind"`   // by rank: an index of Kinds
	Extra     column            `json:"extra"`  // by rank: an index of Extras, -1 for none
	LocalRank column            `json:"local_rank"`
	PID       column            `json:"pid"`
	Whole     Part              `json:"whole"` // of all ranks together
}

// column has a number for each rank. In JSON it is a string of base64: the differences from rank to rank as varints.
type column []int32

// MarshalJSON implements json.Marshaler.
func (c column) MarshalJSON() ([]byte, error) {
	var b []byte
	last := int64(0)
	for _, v := range c {
		b, last = binary.AppendVarint(b, int64(v)-last), int64(v)
	}
	return json.Marshal(b)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *column) UnmarshalJSON(data []byte) error {
	var b []byte
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	*c = make(column, 0, len(b))
	for last := int64(0); len(b) > 0; {
		difference, n := binary.Varint(b)
		if last += difference; n <= 0 || last < math.MinInt32 || last > math.MaxInt32 {
			return errors.New("a column of a roster that holds no numbers of 32 bits")
		}
		*c, b = append(*c, int32(last)), b[n:]
	}
	return nil
}

// newList returns the list of members, which are in the order of their ranks.
func newList(members []Member) (*list, error) {
	l := &list{}
	kinds, extras := map[string]int32{}, map[string]int32{}
	for _, m := range members {
		if m.PID < 0 || m.PID > math.MaxInt32 || m.LocalRank > math.MaxInt32 {
			return nil, fmt.Errorf("%v, local rank %d: numbers of 31 bits are allowed", m, m.LocalRank)
		}
		extra := int32(-1)
		if m.Extra != nil {
			at, known := extras[string(m.Extra)]
			if !known {
				at = int32(len(l.Extras))
				extras[string(m.Extra)], l.Extras = at, append(l.Extras, m.Extra)
			}
			extra = at
		}
		l.Extra, l.PID = append(l.Extra, extra), append(l.PID, int32(m.PID))
		l.LocalRank = append(l.LocalRank, int32(m.LocalRank))
		l.Whole.add(m.Part)
		m.Rank, m.LocalRank, m.PID, m.Part, m.Extra = 0, 0, 0, Part{}, nil
		text, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		kind, known := kinds[string(text)]
		if !known {
			kind = int32(len(l.Kinds))
			kinds[string(text)], l.Kinds = kind, append(l.Kinds, m)
		}
		l.Kind = append(l.Kind, kind)
	}
	return l, nil
}

// check returns an error unless the list has an entry for each rank of a run.
func (l *list) check(ranks int) error {
	for _, c := range []column{l.Kind, l.Extra, l.LocalRank, l.PID} {
		if len(c) != ranks {
			return fmt.Errorf("rank 0 sent a roster of %d ranks, want %d", len(c), ranks)
		}
	}
	for r := range ranks {
		if kind, extra := int(l.Kind[r]), int(l.Extra[r]); kind < 0 || kind >= len(l.Kinds) || extra < -1 ||
			extra >= len(l.Extras) {
			return fmt.Errorf("rank 0 sent a roster without an entry for rank %d", r)
		}
	}
	return nil
}

// member returns the entry of a rank. Ranks whose Extra is equal share its memory.
func (l *list) member(rank int) Member {
	m := l.Kinds[l.Kind[rank]]
	m.Rank, m.LocalRank, m.PID = rank, int(l.LocalRank[rank]), int(l.PID[rank])
	if extra := l.Extra[rank]; extra >= 0 {
		m.Extra = l.Extras[extra]
	}
	return m
}
