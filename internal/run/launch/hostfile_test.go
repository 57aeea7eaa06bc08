package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestPlace(t *testing.T) {
	hosts := []Slots{{"a", 2}, {"b", 1}, {"c", 3}}
	for _, c := range []struct {
		ranks  int
		byNode bool
		want   string // host and local rank of local size, by rank
	}{
		{6, false, "a 0/2, a 1/2, b 0/1, c 0/3, c 1/3, c 2/3"},
		{4, false, "a 0/2, a 1/2, b 0/1, c 0/1"},
		{2, false, "a 0/2, a 1/2"},
		{6, true, "a 0/2, b 0/1, c 0/3, a 1/2, c 1/3, c 2/3"},
		{4, true, "a 0/2, b 0/1, c 0/1, a 1/2"},
		{2, true, "a 0/1, b 0/1"},
	} {
		ps, err := Place(hosts, c.ranks, c.byNode)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r, p := range ps {
			if p.Rank != r {
				t.Errorf("%d ranks: %v in the place of rank %d", c.ranks, p, r)
			}
			got = append(got, fmt.Sprintf("%s %d/%d", p.Host, p.LocalRank, p.LocalSize))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%d ranks, by node %v: %s, want %s", c.ranks, c.byNode, text, c.want)
		}
	}
	_, err := Place(hosts, 7, false)
	if want := "7 ranks need 7 slots, and there are 6: a 2, b 1, c 3"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestParseHosts(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   []Slots
	}{
		{[]string{"a:4,b:2"}, []Slots{{"a", 4}, {"b", 2}}},
		{[]string{"a,a", "b , a:3"}, []Slots{{"a", 5}, {"b", 1}}},
		{[]string{"me@10.0.0.1:2,fe80::1%eth0,[::1]:3,[::2]"},
			[]Slots{{"me@10.0.0.1", 2}, {"fe80::1%eth0", 1}, {"::1", 3}, {"::2", 1}}},
	} {
		if got, err := ParseHosts(c.values); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v; want %v", c.values, got, err, c.want)
		}
	}
	for value, want := range map[string]string{
		"a:0":       `--host "a:0": "a:0": 1 to 1048576 slots are allowed`,
		"a:x":       `--host "a:x": "a:x": 1 to 1048576 slots are allowed`,
		"a,":        `--host "a,": must be a host, as in a:4,b:4`,
		":4":        `--host ":4": must be a host, as in a:4,b:4`,
		"-oProxy":   `--host "-oProxy": "-oProxy" is no name or address of a host`,
		"a b":       `--host "a b": "a b" is no name or address of a host`,
		"x@-y":      `--host "x@-y": "x@-y" is no name or address of a host`,
		"[::1]4":    `--host "[::1]4": "[::1]4": must be [address]:slots`,
		"$(reboot)": `--host "$(reboot)": "$(reboot)" is no name or address of a host`,
	} {
		if _, err := ParseHosts([]string{value}); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", value, err, want)
		}
	}
}

func TestReadHostfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	read := func(text string) ([]Slots, error) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadHostfile(path)
	}
	got, err := read("# two hosts\n\na slots=4 max_slots=8 # with room\n  b\tslots=2\nc\nb max-slots=1\nd:3\n")
	if want := []Slots{{"a", 4}, {"b", 3}, {"c", 1}, {"d", 3}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for text, want := range map[string]string{
		"a slots=4\nb slots=none\n": `, line 2: "slots=none": 1 to 1048576 slots are allowed`,
		"a slots 4":                 `, line 1: "slots": 1 to 1048576 slots are allowed`,
		"a cpus=4":                  `, line 1: "cpus=4": allowed after a host are slots=N and max_slots=N`,
		"a slots=4 max_slots=2":     `, line 1: a has slots=4 and max_slots=2: slots may not exceed max_slots`,
		"--oops slots=1":            `, line 1: "--oops" is no name or address of a host`,
		"# nothing\n":               `: no host in it; a line looks like: node1 slots=4`,
	} {
		if _, err := read(text); err == nil || err.Error() != "--hostfile "+path+want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{pipe: "a named pipe", "/dev/zero": "a device"} {
		want := "--hostfile: open " + path + ": " + kind + ", not a regular file"
		if _, err := ReadHostfile(path); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := ReadHostfile("/nowhere/hosts"); err == nil ||
		err.Error() != "--hostfile: open /nowhere/hosts: no such file or directory" {
		t.Errorf("error %v", err)
	}
}

func TestVariables(t *testing.T) {
	lookup := func(name string) (string, bool) { return "from outside", name == "SET" }
	got, err := Variables([]string{"A=1", "B=x=y", "SET", "EMPTY="}, lookup)
	if want := []string{"A=1", "B=x=y", "SET=from outside", "EMPTY="}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	for flag, want := range map[string]string{
		"NOT_SET":       "-x NOT_SET: not set in the environment; -x NOT_SET=value sets it",
		"=1":            `-x "=1": allowed are VAR and VAR=value`,
		"A B=1":         `-x "A B=1": allowed are VAR and VAR=value`,
		"JACOBI_RANK=3": "-x JACOBI_RANK: the launcher sets this variable for each rank",
	} {
		if _, err := Variables([]string{flag}, lookup); err == nil || err.Error() != want {
			t.Errorf("-x %s: error %v, want %s", flag, err, want)
		}
	}
}

func TestRunIDsAre32HexadecimalDigitsAndDiffer(t *testing.T) {
	a, b := NewRunID(), NewRunID()
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(a) || a == b {
		t.Errorf("run ids %q, %q", a, b)
	}
}

func TestFindBinaryLooksBesideTheLauncherThenOnPath(t *testing.T) {
	beside, onPath := t.TempDir(), t.TempDir()
	t.Setenv("PATH", onPath)
	_, err := findBinary(RankBinary, beside)
	want := "find jacobi-rank: neither beside the launcher in " + beside + " nor on PATH (" + onPath + ")"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	for _, dir := range []string{onPath, beside} {
		path := filepath.Join(dir, RankBinary)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := findBinary(RankBinary, beside); got != path || err != nil {
			t.Errorf("found %q, error %v, want %q", got, err, path)
		}
	}
}

func TestLineWriterCutsLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		name   string
		writes []string
		want   []string
	}{
		{"whole lines", []string{"a\nb\n"}, []string{"a", "b"}},
		{"a line in pieces", []string{"a", "b", "c\nd"}, []string{"abc", "d"}},
		{"empty lines", []string{"\n\na\n\n"}, []string{"", "", "a", ""}},
		{"nothing", []string{""}, nil},
		{"the longest line", []string{long, "\n"}, []string{long}},
		{"a longer one", []string{long + "y\nz\n"}, []string{long, "y", "z"}},
		{"a longer one in pieces", []string{long, "y", "\n"}, []string{long, "y"}},
	} {
		var got []string
		w := lineWriter{emit: func(line []byte) { got = append(got, string(line)) }}
		for _, p := range c.writes {
			if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
				t.Errorf("%s: wrote %d of %d bytes, error %v", c.name, n, len(p), err)
			}
		}
		w.Close()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d lines, want %d, or other ones", c.name, len(got), len(c.want))
		}
	}
}

func TestTags(t *testing.T) {
	for name, want := range map[string]string{
		"rank":   "[3] two words\n",
		"stream": "[3]<stderr> two words\n",
		"none":   "two words\n",
	} {
		tag, err := ParseTag(name)
		if got := string(tag.Append(nil, 3, Stderr, []byte("two words"))); got != want || err != nil {
			t.Errorf("%s: %q, error %v, want %q", name, got, err, want)
		}
	}
	if _, err := ParseTag("job"); err == nil || err.Error() != `"job": allowed are rank, stream and none` {
		t.Errorf("error %v", err)
	}
}

func TestVerdictPrefersTheFinalMessage(t *testing.T) {
	long := strings.Repeat("x", maxVerdict)
	for _, c := range []struct {
		lines []string
		want  string
		held  int // lines of the final message
	}{
		{nil, "", 0},
		{[]string{"a", "", "b", " "}, "b", 0},
		{[]string{"a", "jacobi-rank: no device", "bye"}, "no device; bye", 2},
		{[]string{"jacobi-rank: rank 2: rank 3 is gone"}, "rank 3 is gone", 1},
		{[]string{"jacobi-rank: no device", long, "bye"}, "no device", 1},
		{[]string{"panic: index 7", "", "goroutine 1 [running]:"}, "panic: index 7", 0},
		{[]string{long + "y"}, long, 0},
	} {
		v := verdict{rank: 2}
		held := 0
		for _, l := range c.lines {
			if v.add([]byte(l)) {
				held++
			}
		}
		if v.String() != c.want || held != c.held {
			t.Errorf("%.100q: verdict %.100q, %d lines held, want %.100q, %d", c.lines, v.String(), held, c.want,
				c.held)
		}
	}
}
