package e2e

import (
	"os"
	"strings"
	"testing"

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
