package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// .ci/toolchain takes the Go of the PATH if that is new enough, or fetches a newer one itself. Else it asks the proxy
// for the pinned one, and refuses what does not have its checksum.
func TestToolchain(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../.ci/toolchain")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path)
		w.Write([]byte("no toolchain"))
	}))
	defer proxy.Close()
	for _, c := range []struct {
		have, local string // the version of the Go of the PATH, "" for none; its GOTOOLCHAIN
		fetches     bool
	}{
		{"1.26.0", "local", false},
		{"1.27.1", "auto", false},
		{"1.22.3", "auto", false},
		{"1.22.3", "local", true},
		{"1.19.8", "", true},
		{"", "", true},
	} {
		dir := t.TempDir()
		place := filepath.Join(dir, "tree", ".ci", "toolchain")
		tools := filepath.Join(dir, "bin")
		for _, d := range []string{filepath.Dir(place), tools} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(place, script, 0o755); err != nil {
			t.Fatal(err)
		}
		const programs = "sh dirname sort tail uname mkdir mktemp chmod rm mv sha256sum perl curl wget"
		for name := range strings.FieldsSeq(programs) {
			if path, err := exec.LookPath(name); err == nil {
				if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c.have != "" {
			fake := "#!/bin/sh\n[ $2 = GOVERSION ] && echo go" + c.have + " || echo " + c.local + "\n"
			if err := os.WriteFile(filepath.Join(tools, "go"), []byte(fake), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		asked.Store("")
		cmd := exec.Command("/bin/sh", place)
		cmd.Env = []string{"PATH=" + tools, "GOPROXY=" + proxy.URL + ",direct"}
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		const zip = "/golang.org/toolchain/@v/v0.0.1-go1."
		left, _ := filepath.Glob(filepath.Join(dir, "tree", ".toolchain", "*"))
		fetched := strings.HasPrefix(asked.Load().(string), zip)
		refused := err != nil && fetched && len(left) == 0 && strings.Contains(said.String(), "go.zip: FAILED")
		taken := err == nil && !fetched && string(out) == filepath.Join(tools, "go")+"\n"
		if c.fetches && !refused || !c.fetches && !taken {
			t.Errorf("Go %q, GOTOOLCHAIN %q: %v, %q, asked for %q, left %q\n%s", c.have, c.local, err, out,
				asked.Load(), left, &said)
		}
	}
}
