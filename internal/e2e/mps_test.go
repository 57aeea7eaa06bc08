package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jacobi/internal/mps/mpstest"
)

// Where ranks share GPUs, the launcher starts the multi-process service for them, and ends it after them.
func TestRanksShareGPUsUnderMPS(t *testing.T) {
	const said = "ranks share 4 GPUs under NVIDIA's multi-process service"
	for _, test := range []struct {
		daemon string
		args   []string
		calls  string
		says   string
	}{
		{mpstest.Running, []string{"-np", "9"}, "daemon, GPUs all\nget_server_list\nquit\n", "launcher: 9 " + said + "\n"},
		{"exit 1", []string{"-np", "5"}, "daemon, GPUs all\n", "ranks take turns on the GPUs, without NVIDIA's multi-process service: nvidia-cuda-mps-control ended: no daemon\n"},
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

// An agent does so for the ranks that it starts.
func TestAgentsRanksShareGPUsUnderMPS(t *testing.T) {
	dir, calls := mpstest.Install(t, mpstest.Running)
	for _, v := range append(fakeCUDA(t), "PATH="+dir+":"+os.Getenv("PATH")) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	u := startServer(t)
	a := startAgent(t, t.TempDir(), u, "--slots", "9")
	out := run(t, t.TempDir(), "launcher", onNodes(u, append(slices.Clone(onGPUs), "-np", "9")...)...)
	if out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	a.waitFor(t, "^9 ranks share 4 GPUs under NVIDIA's multi-process service$")
	a.waitFor(t, "ranks ended")
	if got, want := calls(), "daemon, GPUs all\nget_server_list\nquit\n"; got != want {
		t.Errorf("calls\n%swant\n%s", got, want)
	}
}

// The service ends with a launcher that is killed.
func TestKilledLauncherLeavesNoService(t *testing.T) {
	dir, _ := mpstest.Install(t, mpstest.Running)
	t.Setenv("TMPDIR", t.TempDir()) // the directory of the service stays behind
	for _, v := range append(fakeCUDA(t), "PATH="+dir+":"+os.Getenv("PATH")) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	l := startLive(t, t.TempDir(), append(slices.Clone(onGPUs), "-np", "9")...)
	l.waitFor("9 ranks share 4 GPUs under")
	var daemon int
	b, err := os.ReadFile(filepath.Join(dir, "daemon"))
	if _, scanErr := fmt.Sscan(string(b), &daemon); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	fd, err := unix.PidfdOpen(daemon, 0) // becomes readable when the process ends
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range l.lines { // the pipe ends with the launcher
	}
	_ = l.cmd.Wait() // killed: an error by design
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
	}
	if n != 1 || err != nil {
		t.Errorf("the service outlives its launcher by 5s: %v", err)
	}
	servers, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "jacobi-mps-*", "server"))
	if err != nil || len(servers) != 1 {
		t.Fatalf("servers %v, %v", servers, err)
	}
	if b, err = os.ReadFile(servers[0]); err != nil {
		t.Fatal(err)
	}
	var server int
	if _, err := fmt.Sscan(string(b), &server); err != nil {
		t.Fatal(err)
	}
	_ = unix.Kill(server, unix.SIGKILL) // a real one ends by itself
}
