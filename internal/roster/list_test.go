package roster

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"jacobi/internal/shm"
)

// runOf returns the members of a run of nodes, with perNode ranks each.
func runOf(nodes, perNode int) (members []Member) {
	for r := range nodes * perNode {
		m := member(r, nodes*perNode)
		node := r / perNode
		m.Host, m.Node = fmt.Sprintf("host%d", node), shm.Node{Boot: fmt.Sprintf("boot%d", node), PIDNamespace: "1"}
		m.LocalRank, m.LocalSize, m.Part = r%perNode, perNode, Part{float64(r) / 3, 1, 2}
		m.Extra = json.RawMessage(fmt.Sprintf(`{"cores":[%d]}`, r%perNode))
		members = append(members, m)
	}
	return members
}

// decoded returns l as a rank receives it.
func decoded(t *testing.T, l *list) *list {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	got := new(list)
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A rank gets from the list what rank 0 was told.
func TestListKeepsTheRoster(t *testing.T) {
	alike := []Member{member(0, 2), member(0, 2)}
	alike[1].Rank = 1
	for name, members := range map[string][]Member{
		"nodes": runOf(3, 4), "one": runOf(1, 1), "alike, without extras": alike,
	} {
		l, err := newList(members)
		if err != nil {
			t.Fatal(err)
		}
		got, whole := decoded(t, l), Part{}
		if err := got.check(len(members)); err != nil {
			t.Fatal(err)
		}
		for r, want := range members {
			whole.add(want.Part)
			want.Part = Part{}
			if !reflect.DeepEqual(got.member(r), want) {
				t.Errorf("%s: %+v, want %+v", name, got.member(r), want)
			}
		}
		if got.Whole != whole {
			t.Errorf("%s: %+v in all, want %+v", name, got.Whole, whole)
		}
	}
}

// A list takes few bytes a rank, so that that of 10,000 ranks fits into a message.
func TestListIsShort(t *testing.T) {
	l, err := newList(runOf(160, 64))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(l)
	if err != nil || len(data) > 128<<10 {
		t.Errorf("%d bytes, want at most 128 KiB; %v", len(data), err)
	}
}

// A list that does not have an entry for each rank is refused.
func TestListRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*list)
		want  string
	}{
		"too few":       {func(l *list) { l.PID = l.PID[:3] }, "rank 0 sent a roster of 3 ranks, want 4"},
		"too many":      {func(l *list) { l.Kind = append(l.Kind, 0) }, "rank 0 sent a roster of 5 ranks, want 4"},
		"none":          {func(l *list) { l.LocalRank = nil }, "rank 0 sent a roster of 0 ranks, want 4"},
		"no such kind":  {func(l *list) { l.Kind[2] = 1 }, "rank 0 sent a roster without an entry for rank 2"},
		"negative kind": {func(l *list) { l.Kind[1] = -1 }, "rank 0 sent a roster without an entry for rank 1"},
		"no such extra": {func(l *list) { l.Extra[3] = 4 }, "rank 0 sent a roster without an entry for rank 3"},
		"below none":    {func(l *list) { l.Extra[0] = -2 }, "rank 0 sent a roster without an entry for rank 0"},
	} {
		l, err := newList(runOf(1, 4))
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(l)
		if err := decoded(t, l).check(4); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

// Columns that are no numbers are refused, as are numbers that do not fit.
func TestColumnRefuses(t *testing.T) {
	large := base64.StdEncoding.EncodeToString(binary.AppendVarint(nil, 1<<40))
	for _, text := range []string{`"gA=="`, `"?"`, `"` + large + `"`} { // the first is a varint without an end
		var c column
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s: %v", text, c)
		}
	}
}
