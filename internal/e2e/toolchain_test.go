package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// toolchainTree is a tree with .ci/toolchain, and the programs that it finds.
type toolchainTree struct{ dir string }

// newToolchainTree returns a tree in which go says that it has a version and a GOTOOLCHAIN; without a version there is
// no go.
func newToolchainTree(t *testing.T, have, local string) toolchainTree {
	t.Helper()
	script, err := os.ReadFile("../../.ci/toolchain")
	if err != nil {
		t.Fatal(err)
	}
	tree := toolchainTree{t.TempDir()}
	for _, d := range []string{"tree/.ci", "bin"} {
		if err := os.MkdirAll(filepath.Join(tree.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tree.dir, "tree/.ci/toolchain"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	const programs = "sh dirname sort tail uname mkdir mktemp chmod rm rmdir find mv sha256sum timeout perl curl wget"
	for name := range strings.FieldsSeq(programs) {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(tree.dir, "bin", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if have != "" {
		tree.program(t, "go", "[ $2 = GOVERSION ] && echo go"+have+" || echo "+local)
	}
	return tree
}

// program adds a program to those that the script finds, or replaces one.
func (tree toolchainTree) program(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(tree.dir, "bin", name)
	_ = os.Remove(path) // a link, if there is one
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// command returns the command that runs the script with a proxy for modules, and what it says on standard error.
func (tree toolchainTree) command(proxy string) (cmd *exec.Cmd, said *strings.Builder) {
	cmd = exec.Command("/bin/sh", filepath.Join(tree.dir, "tree/.ci/toolchain"))
	cmd.Env = []string{"PATH=" + filepath.Join(tree.dir, "bin"), "GOPROXY=" + proxy + ",direct"}
	said = new(strings.Builder)
	cmd.Stderr = said
	return cmd, said
}

// left returns what the script has left in the tree.
func (tree toolchainTree) left() []string {
	left, _ := filepath.Glob(filepath.Join(tree.dir, "tree", ".toolchain*"))
	more, _ := filepath.Glob(filepath.Join(tree.dir, "tree", ".toolchain", "*"))
	return append(left, more...)
}

// .ci/toolchain takes the Go of the PATH if that is new enough, or fetches a newer one itself. Else it asks the proxy
// for the pinned one, and refuses what does not have its checksum.
func TestToolchain(t *testing.T) {
	t.Parallel()
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
		tree := newToolchainTree(t, c.have, c.local)
		asked.Store("")
		cmd, said := tree.command(proxy.URL)
		out, err := cmd.Output()
		const zip = "/golang.org/toolchain/@v/v0.0.1-go1."
		fetched := strings.HasPrefix(asked.Load().(string), zip)
		refused := err != nil && fetched && len(tree.left()) == 0 && strings.Contains(said.String(), "go.zip: FAILED")
		taken := err == nil && !fetched && string(out) == filepath.Join(tree.dir, "bin", "go")+"\n"
		if c.fetches && !refused || !c.fetches && !taken {
			t.Errorf("Go %q, GOTOOLCHAIN %q: %v, %q, asked for %q, left %q\n%s", c.have, c.local, err, out,
				asked.Load(), tree.left(), said)
		}
	}
}

// A download that has no end, in time or in bytes, ends all the same, and leaves nothing behind, as one that is
// interrupted. What a killed one has left goes with the next.
func TestToolchainWithoutEnd(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		part := make([]byte, 1<<20)
		for first := true; r.Context().Err() == nil; first = false {
			if _, err := w.Write(part); err != nil {
				return
			}
			if first && !strings.HasPrefix(r.URL.Path, "/endless/") {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}
	}))
	defer proxy.Close()
	real, err := exec.LookPath("timeout")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, seconds string
		end                 os.Signal // that ends the script; nil for none
	}{{"slow", "/slow", "1", nil}, {"endless", "/endless", "600", nil}, {"interrupted", "/slow", "600", os.Interrupt},
		{"terminated", "/slow", "600", syscall.SIGTERM}} {
		tree := newToolchainTree(t, "", "")
		tree.program(t, "timeout", `[ "$1" = 600 ] && shift && exec `+real+" "+c.seconds+` "$@"`)
		old := filepath.Join(tree.dir, "tree", ".toolchain", "part.killed")
		if err := os.MkdirAll(old, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		cmd, said := tree.command(proxy.URL + c.path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		if c.end != nil {
			if err := cmd.Process.Signal(c.end); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Wait(); err == nil || len(tree.left()) != 0 {
			t.Errorf("%s: %v, left %q", c.name, err, tree.left())
		}
		const want = "was not downloaded; it may take 600 s and have 200 MB\n"
		if c.end == nil && !strings.HasSuffix(said.String(), want) {
			t.Errorf("%s: %s, want %s at the end", c.name, said, want)
		}
	}
}
