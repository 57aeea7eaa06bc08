package roster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fits reports whether two ranks agree in all that must be equal.
func (m Member) fits(o Member) bool {
	return m.Version == o.Version && m.ConfigHash == o.ConfigHash && m.Functions == o.Functions
}

// problems returns the reasons why the run cannot start, except for missing ranks.
func (c *collector) problems() []string {
	p := slices.Clone(c.faults)
	p = c.differing(p, "version", func(m Member) string { return m.Version })
	p = c.differing(p, "configuration hash", func(m Member) string { return m.ConfigHash })
	return c.computing(p, "the elementary functions", "together they would compute other bits than each alone",
		func(m Member) string { return m.Functions })
}

// computing adds a problem if get, a hash of computed values, differs among the ranks that have joined. It names the
// first rank and the first one that differs from it.
func (c *collector) computing(p []string, what, why string, get func(Member) string) []string {
	var first *Member
	for _, h := range c.byRank {
		switch {
		case h == nil:
		case first == nil:
			first = &h.Member
		case get(h.Member) != get(*first):
			where := func(m Member) string { return fmt.Sprintf("%v on %s (hash %s)", m, m.Platform, get(m)) }
			return append(p, where(*first)+" and "+where(h.Member)+" have different values of "+what+": "+why)
		}
	}
	return p
}

// differing adds a problem if get differs among the ranks that have joined.
func (c *collector) differing(p []string, what string, get func(Member) string) []string {
	ranks := map[string][]int{}
	for r, h := range c.byRank {
		if h != nil {
			ranks[get(h.Member)] = append(ranks[get(h.Member)], r)
		}
	}
	if len(ranks) < 2 {
		return p
	}
	type group struct {
		value string
		ranks []int
	}
	var groups []group
	for v, r := range ranks {
		groups = append(groups, group{v, r})
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.ranks[0], b.ranks[0]) })
	var parts []string
	for _, g := range groups {
		parts = append(parts, fmt.Sprintf("%q on %s", g.value, FormatRanks(g.ranks)))
	}
	return append(p, "the ranks differ in "+what+": "+strings.Join(parts, ", "))
}
