package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jacobi/internal/base/version"
	"jacobi/internal/net/roster"
)

// When ssh breaks, the far end ends, too. The cause is ssh's own message, before or after the last one of the far end.
func TestBrokenSSHIsTheCause(t *testing.T) {
	const gone, broken = "echo 'launcher: the launcher is gone' >&2",
		"echo 'client_loop: send disconnect: Broken pipe' >&2"
	for _, end := range []string{broken + "\n" + gone, gone + "\n" + broken} {
		ssh := filepath.Join(t.TempDir(), "ssh")
		script := fmt.Sprintf("#!/bin/sh\necho '%s{\"version\":\"%s\"}'\nread order\n%s\nexit 255\n", greetingPrefix,
			version.String(), end)
		if err := os.WriteFile(ssh, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		var said []string
		way := SSH{Command: []string{ssh}, Program: "launcher", Say: func(text string) { said = append(said, text) }}
		host, _, err := way.Reach(t.Context(), "far")
		if err != nil {
			t.Fatal(err)
		}
		err = host.Start(t.Context(), Spec{Ranks: []roster.Identity{{Rank: 0, Size: 1}}}, Sink{})
		if want := "start rank 0 on far: client_loop: send disconnect: Broken pipe"; err == nil || err.Error() != want {
			t.Errorf("%s:\nerror %v\nwant  %s", end, err, want)
		}
		if len(said) != 1 || said[0] != "client_loop: send disconnect: Broken pipe" {
			t.Errorf("%s: said %q", end, said)
		}
	}
}
