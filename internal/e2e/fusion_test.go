package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// counted has the packages whose numbers enter the field, a norm, the decision to stop or the results.
var counted = []string{
	"./solver", "./solver/multigrid", "./halo/...", "./internal/compute/cpu/...", "./internal/compute/elementary",
	"./internal/compute/problem", "./internal/compute/reference", "./internal/compute/results",
	"./internal/run/checkpoint",
}

var fusedInstruction = regexp.MustCompile(`\((\S+\.go):(\d+)\)\s+(FN?M(?:ADD|SUB)[SD])\s`)

// On arm64 the compiler may fuse a product with a following sum, which rounds once instead of twice. The code of the
// counted packages must have fused operations only where the source calls math.FMA: all other products are converted
// explicitly.
func TestNothingIsFused(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_BIN") != "" {
		t.Skipf("NOT RUN: %s compiles, and these programs were built elsewhere", t.Name())
	}
	args := append([]string{"build", "-tags", "netgo,osusergo", "-gcflags=-S"}, counted...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sources := map[string][]string{}
	asked, reported := 0, map[string]bool{}
	for _, m := range fusedInstruction.FindAllStringSubmatch(string(out), -1) {
		file, at := m[1], m[1]+":"+m[2]
		if sources[file] == nil {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = strings.Split(string(text), "\n")
		}
		n, _ := strconv.Atoi(m[2])
		switch line := sources[file][n-1]; {
		case strings.Contains(line, "math.FMA("):
			asked++
		case !reported[at]:
			reported[at] = true
			t.Errorf("%s: %s: convert the product: float64(x * y)\n%s", at, m[3], line)
		}
	}
	if asked < 10 {
		t.Errorf("%d instructions of math.FMA were found: has their name changed?", asked)
	}
}
