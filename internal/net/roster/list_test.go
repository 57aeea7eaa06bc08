package roster

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"jacobi/internal/base/shm"
)

// runOf returns the members of a run of nodes, with perNode ranks each.
func runOf(nodes, perNode int) (members []Member) {
	for r := range nodes * perNode {
		m := member(r, nodes*perNode)
		node := r / perNode
		m.Host, m.Node = fmt.Sprintf("host%d", node), shm.Node{Boot: fmt.Sprintf("boot%d", node), PIDNamespace: "1"}
		m.LocalRank, m.LocalSize = r%perNode, perNode
		m.Extra = json.RawMessage(fmt.Sprintf(`{"cores":[%d]}`, r%perNode))
		members = append(members, m)
	}
	return members
}

// encoded returns l as rank 0 sends it.
func encoded(t *testing.T, l *list) []byte {
	t.Helper()
	data, err := l.encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A rank gets from the list what rank 0 was told.
func TestListKeepsTheRoster(t *testing.T) {
	alike := []Member{member(0, 2), member(0, 2)}
	alike[1].Rank = 1
	for name, members := range map[string][]Member{
		"nodes": runOf(3, 4), "one": runOf(1, 1), "alike, without extras": alike, "scattered": scattered(3, 4),
	} {
		sent := newList(members)
		sent.Whole = Part{MaxAbs: 1.0 / 3, MaxSource: 1, Fixed: 2}
		got, err := parseList(encoded(t, sent), len(members))
		if err != nil {
			t.Fatal(err)
		}
		for r, want := range members {
			if !reflect.DeepEqual(got.member(r), want) {
				t.Errorf("%s: %+v, want %+v", name, got.member(r), want)
			}
		}
		if got.Whole != sent.Whole {
			t.Errorf("%s: %+v in all, want %+v", name, got.Whole, sent.Whole)
		}
	}
}

// scattered returns the members of runOf with one rank of each node after the other.
func scattered(nodes, perNode int) (members []Member) {
	all := runOf(nodes, perNode)
	for r := range all {
		m := all[r%nodes*perNode+r/nodes]
		m.Rank = r
		members = append(members, m)
	}
	return members
}

// Ranks that are alike but for their numbers make a group. One without an Extra between others is not alike.
func TestGroups(t *testing.T) {
	odd := runOf(1, 6)
	odd[3].Extra = nil
	for name, c := range map[string]struct {
		members []Member
		want    string
	}{
		"nodes":     {runOf(3, 4), "0-4 4-8 8-12"},
		"scattered": {scattered(2, 2), "0-1 1-2 2-3 3-4"},
		"no extra":  {odd, "0-3 3-4 4-6"},
		"one":       {runOf(1, 1), "0-1"},
	} {
		var got []string
		for _, g := range GroupsOf(c.members) {
			got = append(got, fmt.Sprintf("%d-%d", g.First.Rank, g.End))
			want := c.members[g.First.Rank]
			if !reflect.DeepEqual(g.First, want) {
				t.Errorf("%s: %+v, want %+v", name, g.First, want)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: groups %q, want %q", name, got, c.want)
		}
	}
}

// A list takes few bytes a rank, so that that of 10,000 ranks fits into a message, and few entries are read from it.
func TestListIsShort(t *testing.T) {
	l := newList(runOf(160, 64))
	if data := encoded(t, l); len(data) > 50<<10 {
		t.Errorf("%d bytes, want at most 50 KiB", len(data))
	}
	if len(l.Spans) != 160 {
		t.Errorf("%d spans, want one for each of 160 nodes", len(l.Spans))
	}
}

// A list that does not have an entry for each rank is refused, as is one that is cut off.
func TestListRefuses(t *testing.T) {
	const none = "rank 0 sent a roster without an entry for rank "
	for name, c := range map[string]struct {
		spoil func(*list)
		want  string
	}{
		"too few": {func(l *list) { l.PIDs = l.PIDs[:3] }, "rank 0 sent a roster of 4 ranks and 3 processes, want 4"},
		"too many": {func(l *list) { l.Spans[1].End, l.Spans[1].Step = 5, 0 },
			"rank 0 sent a roster of 5 ranks and 4 processes, want 4"},
		"none": {func(l *list) { l.Spans = nil },
			"rank 0 sent a roster of 0 ranks and 4 processes, want 4"},
		"empty span":       {func(l *list) { l.Spans[1].End = 2 }, none + "2"},
		"gap":              {func(l *list) { l.Spans[1].First.Rank = 3 }, none + "2"},
		"no such extra":    {func(l *list) { l.Spans[1].Extra = 1 }, none + "2"},
		"negative extra":   {func(l *list) { l.Spans[1].Extra, l.Spans[1].Step = -2, 0 }, none + "2"},
		"steps of nothing": {func(l *list) { l.Spans[0].Extra = -1 }, none + "0"},
		"large step":       {func(l *list) { l.Spans[0].Step = 2 }, none + "0"},
		"backward step":    {func(l *list) { l.Spans[1].Step = -1 }, none + "2"},
	} {
		l := newList(runOf(2, 2))
		c.spoil(l)
		if _, err := parseList(encoded(t, l), 4); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
	whole := encoded(t, newList(runOf(2, 2)))
	for n := range whole {
		if _, err := parseList(whole[:n], 4); err == nil {
			t.Errorf("the first %d of %d bytes were taken", n, len(whole))
		}
	}
	if _, err := parseList([]byte("{}"), 4); err == nil ||
		!strings.HasPrefix(err.Error(), "rank 0 sent a roster that cannot be read: ") {
		t.Errorf("plain JSON: %v", err)
	}
}

// Whatever a list holds, reading it and its entries does not fail otherwise than with an error.
func FuzzList(f *testing.F) {
	for _, members := range [][]Member{runOf(2, 2), scattered(2, 2)} {
		data, err := newList(members).encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseList(data, 4)
		if err != nil {
			return
		}
		for r := range 4 {
			if m := l.member(r); m.Rank != r {
				t.Errorf("rank %d in the place of %d", m.Rank, r)
			}
		}
	})
}
