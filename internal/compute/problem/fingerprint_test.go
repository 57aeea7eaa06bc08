package problem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"jacobi/configs"
	"jacobi/solver"
)

// The hash has the expected value in this process and in one without FMA, where functions of math differ.
func TestFunctionsHash(t *testing.T) {
	const want = "34537e56672b88a5"
	if got := FunctionsHash(); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	if os.Getenv("GODEBUG") == "cpu.fma=off" {
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFunctionsHash$")
	cmd.Env = append(os.Environ(), "GODEBUG=cpu.fma=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("without FMA: %v\n%s", err, out)
	}
}

func TestArguments(t *testing.T) {
	positive, negative := 0, 0
	for _, a := range arguments(64)[10:] {
		switch {
		case a > 0x1p-11 && a < 0x1p11:
			positive++
		case a < -0x1p-11 && a > -0x1p11:
			negative++
		default:
			t.Errorf("argument %v", a)
		}
	}
	if positive < 20 || negative < 20 {
		t.Errorf("%d positive and %d negative arguments", positive, negative)
	}
}

func TestRowsHash(t *testing.T) {
	hash := func(p configs.Problem) string {
		t.Helper()
		h, err := open(t, config(33, 20, "float64", p)).RowsHash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash(configs.Problem{})
	for _, p := range []configs.Problem{
		{Top: "1.5"}, {Bottom: "ix"}, {Left: "y"}, {Initial: "iy == 1 and ix == 9 ? 1 : 0"},
	} {
		if hash(p) == base {
			t.Errorf("%+v has the hash of the default", p)
		}
	}
	if again := hash(configs.Problem{Bottom: "sin(0)"}); again != base {
		t.Errorf("the same field has hash %s and %s", base, again)
	}
	p := open(t, config(33, 20, "float64", configs.Problem{Initial: "1/(ix-7)"}))
	want := `problem.initial "1/(ix-7)" at row 1, column 7 (x = 0.21875, y = 0.05263157894736842): ` +
		`+Inf; values must be finite`
	if _, err := p.RowsHash(t.Context()); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	cause := errors.New("the user is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := p.RowsHash(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

// Each file of a problem has an entry with its key and name, whose hash is another one where one value or one pixel is.
func TestContents(t *testing.T) {
	array := npyBytes(1, "<f8", "False", "(5, 4)", 20, solver.Float64)
	other := bytes.Clone(array)
	other[len(other)-6*8] ^= 1
	values := [2]string{writeFile(t, "a.npy", array), writeFile(t, "b.npy", other)}
	truths := npyBytes(1, "|b1", "False", "(5, 4)", 0, solver.Float64)
	truths = truths[:len(truths):len(truths)]
	masks := [2]string{writeFile(t, "a.npy", append(truths, make([]byte, 20)...)),
		writeFile(t, "b.npy", append(append(truths, make([]byte, 19)...), 1))}
	grey := [2]string{pngFile(t, gray([]byte{0, 255, 255}, []byte{0, 255, 255})),
		pngFile(t, gray([]byte{0, 255, 255}, []byte{0, 0, 255}))}
	drawings := [2]string{pngFile(t, drawn("c.b", "..b")), pngFile(t, drawn("c.b", ".b."))}
	for _, c := range []struct {
		key   string
		files [2]string
		with  func(file string) configs.Problem
	}{
		{"problem.initial", values, func(f string) configs.Problem { return configs.Problem{Initial: f} }},
		{"problem.source", values, func(f string) configs.Problem { return configs.Problem{Source: f} }},
		{"problem.coefficient", values, func(f string) configs.Problem { return configs.Problem{Coefficient: f} }},
		{"problem.screening", values, func(f string) configs.Problem { return configs.Problem{Screening: f} }},
		{"problem.fixed", masks, func(f string) configs.Problem { return configs.Problem{Fixed: f} }},
		{"problem.fixed", grey, func(f string) configs.Problem { return configs.Problem{Fixed: f} }},
		{"problem.drawing", drawings, func(f string) configs.Problem {
			return configs.Problem{Drawing: f, Colours: copperAndBlue}
		}},
	} {
		var hashes [2]string
		for i, file := range c.files {
			contents, err := open(t, config(4, 5, "float64", c.with(file))).Contents(t.Context())
			hashes[i] = contents[fmt.Sprintf("%s %q", c.key, file)]
			if err != nil || len(contents) != 1 || len(hashes[i]) != 16 {
				t.Errorf("%s: %v, %v", c.key, contents, err)
			}
		}
		if hashes[0] == hashes[1] {
			t.Errorf("%s: files that differ have the hash %s", c.key, hashes[0])
		}
	}
}
