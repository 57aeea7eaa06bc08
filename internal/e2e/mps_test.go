package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jacobi/internal/base/proctest"
	"jacobi/internal/run/plan/mpstest"
)

// If ranks share GPUs, the launcher starts the multi-process service before them and ends it after them.
func TestRanksShareGPUsUnderMPS(t *testing.T) {
	const said = "ranks share 4 GPUs under NVIDIA's multi-process service"
	for _, test := range []struct {
		daemon string
		args   []string
		calls  string
		says   string
	}{
		{mpstest.Running, []string{"-np", "9"}, "daemon, GPUs all\nget_server_list\nquit\n",
			"launcher: 9 " + said + "\n"},
		{"exit 1", []string{"-np", "5"}, "daemon, GPUs all\n",
			"ranks take turns on the GPUs, without NVIDIA's multi-process service: nvidia-cuda-mps-control ended: no " +
				"daemon\n"},
		{mpstest.Running, []string{"-np", "9", "--set", "device.mps=off"}, "", "9 ranks share 4 GPUs on"},
		{mpstest.Running, []string{"-np", "4"}, "", ""},
	} {
		dir, calls := mpstest.Install(t, test.daemon)
		_, out := gpusOf(t, append(fakeCUDA(t), "PATH="+dir+":"+os.Getenv("PATH")), test.args...)
		if got := calls(); got != test.calls {
			t.Errorf("%v: calls\n%swant\n%s", test.args, got, test.calls)
		}
		if !strings.Contains(out, test.says) || strings.Contains(out, said) != strings.Contains(test.says, said) {
			t.Errorf("%v: want %q in\n%s", test.args, test.says, out)
		}
	}
}

// useFakeMPS provides all programs of a test with fake GPUs and, in dir, a fake multi-process service.
func useFakeMPS(t *testing.T) (dir string, calls func() string) {
	t.Helper()
	dir, calls = mpstest.Install(t, mpstest.Running)
	for _, v := range append(fakeCUDA(t), "PATH="+dir+":"+os.Getenv("PATH")) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return dir, calls
}

// Only one of a benchmark's many runs reports the service.
func TestBenchSaysOnceThatRanksShareGPUs(t *testing.T) {
	dir, _ := mpstest.Install(t, mpstest.Running)
	env := append(fakeCUDA(t, "-DFREE=(64ul<<20)"), "PATH="+dir+":"+os.Getenv("PATH"))
	args := append(set("device.backend=cuda", "solver.max_iterations=2"), "bench", "--sizes", "72", "--ranks", "9",
		"--repeat", "3")
	out := runWith(t, env, t.TempDir(), "launcher", args...)
	const said = "launcher: 9 ranks share 4 GPUs under NVIDIA's multi-process service\n"
	if out.code != 0 || strings.Count(out.stderr, said) != 1 {
		t.Errorf("exit code %d, want %q once in\n%s", out.code, said, out.stderr)
	}
}

// An agent starts the service for its ranks.
func TestAgentsRanksShareGPUsUnderMPS(t *testing.T) {
	_, calls := useFakeMPS(t)
	u := startServer(t)
	a := startAgent(t, t.TempDir(), u, "--slots", "9")
	mustRun(t, t.TempDir(), "launcher", onNodes(u, append(slices.Clone(onGPUs), "-np", "9")...)...)
	a.waitFor("^9 ranks share 4 GPUs under NVIDIA's multi-process service$")
	a.waitFor("ranks ended")
	if got, want := calls(), "daemon, GPUs all\nget_server_list\nquit\n"; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}

// The service ends with a launcher that is killed.
func TestKilledLauncherLeavesNoService(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // the service's directory is left behind
	dir, _ := useFakeMPS(t)
	l := startLive(t, t.TempDir(), append(slices.Clone(onGPUs), "-np", "9")...)
	l.waitFor("9 ranks share 4 GPUs under")
	daemon, err := proctest.Watch(t, proctest.PIDIn(t, filepath.Join(dir, "daemon")))
	if err != nil {
		t.Fatal(err)
	}
	l.signal(os.Kill)
	l.ends(-1)
	if err := daemon.AwaitEnd(5 * time.Second); err != nil {
		t.Errorf("the service outlives its launcher: %v", err)
	}
	servers, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "jacobi-mps-*", "server"))
	if err != nil || len(servers) != 1 {
		t.Fatalf("servers %v, %v", servers, err)
	}
	_ = syscall.Kill(proctest.PIDIn(t, servers[0]), syscall.SIGKILL) // a real server ends by itself
}
