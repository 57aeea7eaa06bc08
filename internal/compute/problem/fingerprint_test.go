package problem

import (
	"os"
	"os/exec"
	"testing"
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
