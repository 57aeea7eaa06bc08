package probe

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// readText reads bounds from a file with the given text.
func readText(t *testing.T, text string) (Bounds, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bounds.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := ReadBounds(file)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), filepath.Dir(file)+"/"))
	}
	return b, err
}

func TestBounds(t *testing.T) {
	b, err := readText(t, `{"copies.gpu*.to_device": 50e9, "peers.latency": {"max": 2e-6}, "nats.rate": {"min": 1}}`)
	if err != nil {
		t.Fatal(err)
	}
	reports := []Report{
		{Host: "a", Figures: []Figure{{"copies.gpu0.to_device", 50e9, "B/s"},
			{"copies.gpu1.to_device", 49.9e9, "B/s"}}},
		{Host: "b", Figures: []Figure{{"copies.gpu0.to_device", 12e9, "B/s"}, {"peers.latency", 3.5e-6, "s"}}},
	}
	want := []Miss{
		{"copies.gpu*.to_device", "a", "copies.gpu1.to_device is 49.9 GB/s, at least 50.0 GB/s was expected", 49.9e9},
		{"copies.gpu*.to_device", "b", "copies.gpu0.to_device is 12.0 GB/s, at least 50.0 GB/s was expected", 12e9},
		{"nats.rate", "", "nats.rate: no part measured it", 0},
		{"peers.latency", "b", "peers.latency is 3.5µs, at most 2µs was expected", 3.5e-6},
	}
	if got := b.Check(reports); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	reports[1].Figures[0].Value, reports[0].Figures[1].Value = 51e9, 60e9
	reports[1].Figures[1].Value = 2e-6
	reports[0].Figures = append(reports[0].Figures, Figure{Name: "nats.rate", Value: 1})
	if got := b.Check(reports); got != nil {
		t.Errorf("got %+v, want none", got)
	}
}

// A bound that no part measured belongs to no host.
func TestMissesInWords(t *testing.T) {
	var out bytes.Buffer
	bounds, err := readText(t, `{"copies.host": 5e9, "nats.rate": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	p := Printer{Out: &out, Bounds: bounds}
	if err := p.Add(Report{Host: "a", Figures: []Figure{{"copies.host", 4e9, "B/s"}}}); err != nil {
		t.Fatal(err)
	}
	const want = "Nothing is slow against its peers, and nothing that was measured is missing.\n" +
		"expected a: copies.host is 4.00 GB/s, at least 5.00 GB/s was expected\n" +
		"expected: nats.rate: no part measured it\n2 of what was expected did not hold.\n"
	if err := p.Finish(); !errors.Is(err, ErrFailed) || out.String() != want {
		t.Errorf("got %v, %s\nwant %s", err, out.String(), want)
	}
}

func TestBoundsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{}":               `bounds.json: it has no bounds; wanted is {"copies.gpu*.to_device.pinned": 50e9}`,
		`{"a": "5"}`:       `bounds.json: "5": must be a number, or {"min": number, "max": number}`,
		`{"a": {"low":1}}`: `bounds.json: {"low":1}: must be a number, or {"min": number, "max": number}`,
		`{"a[": 5}`:        `bounds.json: "a[": syntax error in pattern`,
		`[`:                `bounds.json: unexpected end of JSON input`,
	} {
		if _, err := readText(t, text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v\nwant %s", text, err, want)
		}
	}
}

func TestRequest(t *testing.T) {
	r, err := NewRequest([]string{"peers", "devices"})
	if err != nil || !slices.Equal(r, []string{"devices", "peers"}) {
		t.Errorf("got %v, %v", r, err)
	}
	for _, names := range [][]string{nil, {"all"}} {
		if r, err := NewRequest(names); err != nil || len(r.Parts()) != len(Parts()) {
			t.Errorf("%v: got %v, %v", names, r, err)
		}
	}
	const allowed = ": allowed are devices, copies, peers, nats, sweep"
	if _, err := NewRequest([]string{"peers", "copie"}); err == nil ||
		err.Error() != `part "copie"`+allowed+"; did you mean copies?" {
		t.Errorf("got %v", err)
	}
	if _, err := NewRequest([]string{""}); err == nil || err.Error() != `part ""`+allowed {
		t.Errorf("got %v", err)
	}
}

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		rate(4.8e12): "4800 GB/s", rate(55.44e9): "55.4 GB/s", rate(1.234e9): "1.23 GB/s", rate(1.234e6): "1.23 MB/s",
		rate(0): "0 GB/s", seconds(1.2345e-6): "1.234µs", seconds(12.3456): "12.3s", seconds(0.0123456): "12.3ms",
		size(4096): "4.0 KiB", size(1 << 30): "1.0 GiB",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
