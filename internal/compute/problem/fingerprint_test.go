package problem

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"jacobi/configs"
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
