// Package mpstest provides a stand-in for NVIDIA's multi-process service that needs no GPU.
package mpstest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Running is the script of a daemon that runs until the command quit; its server outlives it.
const Running = `sleep 1000 & echo $! >"$CUDA_MPS_PIPE_DIRECTORY/server"
  echo $$ >"$CUDA_MPS_PIPE_DIRECTORY/new"; mv "$CUDA_MPS_PIPE_DIRECTORY/new" "$CUDA_MPS_PIPE_DIRECTORY/pid"
  wait`

// Install writes a control program to dir, which the caller puts on PATH. As a daemon it runs daemon, a shell script,
// and writes its process id to the file daemon in dir. calls returns what the program was called for, one line a call.
func Install(t *testing.T, daemon string) (dir string, calls func() string) {
	t.Helper()
	dir = t.TempDir()
	script := `#!/bin/sh
log=` + dir + `/calls
if [ "$1" = -f ]; then
  echo $$ >${log%calls}daemon
  echo "daemon, GPUs ${CUDA_VISIBLE_DEVICES-all}" >>$log
  [ "$CUDA_MPS_LOG_DIRECTORY" = "$CUDA_MPS_PIPE_DIRECTORY" ] || exit 9
  ` + daemon + `
fi
read command
[ -e "$CUDA_MPS_PIPE_DIRECTORY/pid" ] || { echo no daemon; exit 1; }
echo "$command" >>$log
[ $command = quit ] && kill $(cat "$CUDA_MPS_PIPE_DIRECTORY/pid")
exit 0
`
	if err := os.WriteFile(filepath.Join(dir, "nvidia-cuda-mps-control"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, func() string {
		b, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
}
