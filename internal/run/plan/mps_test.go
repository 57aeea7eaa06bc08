package plan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jacobi/internal/base/proctest"
	"jacobi/internal/run/plan/mpstest"
)

// installMPS puts a stand-in for the control program on PATH.
func installMPS(t *testing.T, daemon string) (calls func() string) {
	t.Helper()
	dir, calls := mpstest.Install(t, daemon)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

func TestMPS(t *testing.T) {
	calls := installMPS(t, mpstest.Running)
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	s, err := startMPS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(s.environ(), " "),
		"CUDA_MPS_PIPE_DIRECTORY="+s.dir+" CUDA_MPS_LOG_DIRECTORY="+s.dir; got != want {
		t.Errorf("variables %q, want %q", got, want)
	}
	p, err := proctest.Watch(t, proctest.PIDIn(t, filepath.Join(s.dir, "server")))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if got, want := calls(), "daemon, GPUs all\nget_server_list\nquit\n"; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	if err := p.AwaitEnd(5 * time.Second); err != nil {
		t.Errorf("its server: %v", err)
	}
}

func TestMPSThatDoesNotstartMPS(t *testing.T) {
	calls := installMPS(t, "echo out of luck >&2; exit 1")
	s, err := startMPS(t.Context(), nil)
	if want := "nvidia-cuda-mps-control ended: no daemon"; s != nil || err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if got, want := calls(), "daemon, GPUs all\n"; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}

// A service that never answers is killed when the context ends.
func TestMPSThatDoesNotAnswer(t *testing.T) {
	installMPS(t, "exec sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no patience"))
	if _, err := startMPS(ctx, nil); err == nil || !strings.HasPrefix(err.Error(),
		"nvidia-cuda-mps-control does not answer: no patience") {
		t.Errorf("error %v", err)
	}
}

func TestNoMPS(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := startMPS(t.Context(), nil); !errors.Is(err, errNoMPS) {
		t.Errorf("without the program: %v", err)
	}
	calls := installMPS(t, mpstest.Running)
	const set = "no service to start: CUDA_MPS_PIPE_DIRECTORY is set"
	if _, err := startMPS(t.Context(), []string{"A=b", pipeVar + "=/elsewhere"}); !errors.Is(err, errNoMPS) ||
		err.Error() != set {
		t.Errorf("for clients of another service: %v", err)
	}
	t.Setenv(pipeVar, "/elsewhere")
	if _, err := startMPS(t.Context(), nil); !errors.Is(err, errNoMPS) || err.Error() != set {
		t.Errorf("beside another service: %v", err)
	}
	if calls() != "" {
		t.Errorf("the program was called:\n%s", calls())
	}
}
