package agent

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jacobi/configs"
)

// Variables that make a rank load or run something else are refused.
func TestEnviron(t *testing.T) {
	own := configs.NATS{URL: "nats://own", SecretFile: "own"}
	for _, v := range []string{
		"CUDA_INJECTION64_PATH=/evil.so", "CUDA_CACHE_PATH=/evil", "CUDA_MPS_PIPE_DIRECTORY=/evil", "CUDA_VISIBLE=0",
		"NVIDIA_TF32_OVERRIDE=1", "GODEBUG=x", "GOTRACEBACK=crash", "LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil",
		"JACOBI_RANK=7", "JACOBI_GRID_NX=5",
		"JACOBI_RUN_ID=other", "JACOBI_LAUNCHED_BY=slurm", "JACOBI_GRID=1", "PATH=/evil", "=", "",
	} {
		name, _, _ := strings.Cut(v, "=")
		_, err := environ([]string{configs.EnvJob + "={}", v}, own)
		want := "variable " + name + ": an agent accepts only the keys of a run file and "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v", v, err)
		}
	}
	got, err := environ([]string{
		configs.EnvJob + "={}", "CUDA_VISIBLE_DEVICES=1", "JACOBI_NATS_URL=nats://launcher", "JACOBI_NATS_CA=ca",
		"JACOBI_NATS_SECRET_FILE=inline:run", "JACOBI_EXAMINE=1",
	}, own)
	for _, want := range []string{
		configs.EnvJob + "={}", "CUDA_VISIBLE_DEVICES=1", "JACOBI_NATS_URL=nats://own", "JACOBI_NATS_CA=",
		"JACOBI_NATS_SECRET_FILE=inline:run", "JACOBI_EXAMINE=1",
	} {
		if err != nil || !slices.Contains(got, want) {
			t.Errorf("%s is not in %q, %v", want, got, err)
		}
	}
	for _, v := range got {
		if strings.Contains(v, "launcher") || v == "JACOBI_NATS_SECRET_FILE=own" || v == "JACOBI_NATS_CA=ca" {
			t.Errorf("%s is the launcher's, or the agent's secret", v)
		}
	}
}

// docs/security.md lists exactly the variables in passed.
func TestDocumentedVariables(t *testing.T) {
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "these variables and no others:\n")
	list, _, _ = strings.Cut(strings.TrimSpace(list), "\n\n")
	var listed []string
	for _, m := range regexp.MustCompile("`([A-Z0-9_]+)`").FindAllStringSubmatch(list, -1) {
		listed = append(listed, m[1])
	}
	if !slices.Equal(listed, passed) {
		t.Errorf("docs/security.md lists %q, and an agent passes %q", listed, passed)
	}
}
