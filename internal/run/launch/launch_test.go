package launch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

func TestOneHostCountsLocalRanks(t *testing.T) {
	want := []Placement{{0, "a", 0, 3}, {1, "a", 1, 3}, {2, "a", 2, 3}}
	if got := OneHost("a", 3); !slices.Equal(got, want) {
		t.Errorf("placement %v, want %v", got, want)
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
