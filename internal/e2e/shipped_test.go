package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// A program that can find methods by their names, as package text/template does, holds every exported method of every
// type: some 5 MB more.
func TestProgramsHoldNoTemplates(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"launcher", "jacobi-rank"} {
		data := []byte(readText(t, bin, program))
		for function, want := range map[string]bool{
			"strings.Replace": true, "text/template.(*state).evalField": false,
		} {
			if got := bytes.Contains(data, []byte(function)); got != want {
				t.Errorf("%s holds %s: %t, want %t", program, function, got, want)
			}
		}
	}
}

// unprivileged returns the n containers of a service. It fails unless the first process of each runs as another user
// than root, without capabilities, and can gain none.
func (c *composed) unprivileged(service string, n int) []string {
	c.t.Helper()
	ids := c.containers(service)
	if len(ids) != n {
		c.t.Fatalf("%s: containers %v, want %d", service, ids, n)
	}
	for _, id := range ids {
		pid := strings.TrimSpace(c.must(exec.Command("docker", "inspect", "--format", "{{.State.Pid}}", id)))
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			c.t.Fatalf("%s: %v", service, err)
		}
		for _, line := range []string{`Uid:\t[1-9]`, `Gid:\t[1-9]`, `CapPrm:\t0{16}\n`, `CapEff:\t0{16}\n`,
			`CapBnd:\t0{16}\n`, `NoNewPrivs:\t1\n`} {
			if !regexp.MustCompile(`(?m)^` + line).Match(status) {
				c.t.Errorf("%s: no line %s in\n%s", service, line, status)
			}
		}
	}
	return ids
}

// No service of the Compose files has privileges, and prepare.sh makes all passwords.
func TestComposeFilesGiveNoPrivileges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "docker")
	if err := os.CopyFS(dir, os.DirFS("../../docker")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", filepath.Join(dir, "prepare.sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, services := range map[string]int{"compose.yaml": 5, "compose.cluster.yaml": 3, "compose.gpu.yaml": 0} {
		text := []byte(readText(t, dir, name))
		var file struct {
			Services map[string]struct {
				Image, User string
				CapDrop     []string `yaml:"cap_drop"`
				SecurityOpt []string `yaml:"security_opt"`
				Environment map[string]string
				Secrets     []string
			}
			Secrets map[string]struct{ File string }
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		whole := 0
		for service, s := range file.Services {
			if s.Image == "" {
				continue // it adds to a service of compose.yaml
			}
			whole++
			if !regexp.MustCompile(`^([1-9]|\$\{JACOBI_USER)`).MatchString(s.User) ||
				!slices.Equal(s.CapDrop, []string{"ALL"}) ||
				!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
				t.Errorf("%s: %s: %+v", name, service, s)
			}
			if service == "grafana" && (!slices.Equal(s.Secrets, []string{"grafana_password"}) ||
				s.Environment["GF_SECURITY_ADMIN_PASSWORD__FILE"] != "/run/secrets/grafana_password") {
				t.Errorf("%s: the password of admin: %+v", name, s)
			}
		}
		if whole != services {
			t.Errorf("%s: %d services, want %d", name, whole, services)
		}
		for secret, s := range file.Secrets {
			if text, err := os.ReadFile(filepath.Join(dir, s.File)); err != nil || len(text) < 32 {
				t.Errorf("%s: secret %s: %d bytes, %v", name, secret, len(text), err)
			}
		}
	}
}

// No container of the Kubernetes files has privileges, and the NATS server shows its monitoring to its own probes
// alone.
func TestKubernetesFilesGiveNoPrivileges(t *testing.T) {
	text, err := os.ReadFile("../../docker/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	containers, conf := 0, ""
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var object struct {
			Data map[string]string
			Spec struct {
				Template struct {
					Spec struct {
						SecurityContext struct {
							RunAsNonRoot bool `yaml:"runAsNonRoot"`
							RunAsUser    int  `yaml:"runAsUser"`
						} `yaml:"securityContext"`
						Containers []struct {
							Name            string
							SecurityContext struct {
								AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
								Capabilities             struct{ Drop []string }
							} `yaml:"securityContext"`
						}
					}
				}
			}
		}
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		conf += object.Data["nats.conf"]
		pod := object.Spec.Template.Spec
		for _, c := range pod.Containers {
			containers++
			s := c.SecurityContext
			if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 ||
				s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("container %s: %+v in %+v", c.Name, s, pod.SecurityContext)
			}
		}
	}
	if containers != 2 || !regexp.MustCompile(`(?m)^http: "127\.0\.0\.1:8222"`).MatchString(conf) {
		t.Errorf("%d containers, want 2, and nats.conf\n%s", containers, conf)
	}
}

// toolchainTree is a directory with a tree that has .ci/toolchain, and the programs that the script finds.
type toolchainTree string

// newToolchainTree returns a tree in which go says that it has a version and a GOTOOLCHAIN; without a version there is
// no go.
func newToolchainTree(t *testing.T, have, local string) toolchainTree {
	t.Helper()
	tree := toolchainTree(t.TempDir())
	writeText(t, readText(t, "../../.ci/toolchain"), string(tree), "tree/.ci/toolchain")
	const programs = "sh dirname sort tail uname mkdir mktemp chmod rm rmdir find mv sha256sum timeout perl curl wget"
	for name := range strings.FieldsSeq(programs) {
		if path, err := exec.LookPath(name); err == nil {
			tree.program(t, name, "exec "+path+` "$@"`)
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
	writeText(t, "#!/bin/sh\n"+script+"\n", string(tree), "bin", name)
	if err := os.Chmod(filepath.Join(string(tree), "bin", name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// command returns the command that runs the script with a proxy for modules, and what it says on standard error.
func (tree toolchainTree) command(proxy string) (cmd *exec.Cmd, said *strings.Builder) {
	// A shell cannot trap a signal that it began with ignored, as a job in the background begins.
	script := filepath.Join(string(tree), "tree/.ci/toolchain")
	cmd = exec.Command("/usr/bin/env", "--default-signal=INT", "/bin/sh", script)
	cmd.Env = []string{"PATH=" + filepath.Join(string(tree), "bin"), "GOPROXY=" + proxy + ",direct"}
	said = new(strings.Builder)
	cmd.Stderr = said
	return cmd, said
}

// left returns what the script has left in the tree.
func (tree toolchainTree) left() []string {
	left, _ := filepath.Glob(filepath.Join(string(tree), "tree", ".toolchain*"))
	more, _ := filepath.Glob(filepath.Join(string(tree), "tree", ".toolchain", "*"))
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
		taken := err == nil && !fetched && string(out) == filepath.Join(string(tree), "bin", "go")+"\n"
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
		if strings.HasPrefix(r.URL.Path, "/signal/") {
			asked <- struct{}{}
		}
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
	ctx := limited(t)
	real, err := exec.LookPath("timeout")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, seconds string
		end                 os.Signal // that ends the script; nil for none
	}{{"slow", "/slow", "1", nil}, {"endless", "/endless", "600", nil}, {"interrupted", "/signal", "600", os.Interrupt},
		{"terminated", "/signal", "600", syscall.SIGTERM}} {
		tree := newToolchainTree(t, "", "")
		tree.program(t, "timeout", `[ "$1" = 600 ] && shift && exec `+real+" "+c.seconds+` "$@"`)
		old := filepath.Join(string(tree), "tree", ".toolchain", "part.killed")
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
		if c.end != nil {
			select {
			case <-asked:
			case <-ctx.Done():
				t.Fatalf("%s: no request: %s", c.name, said)
			}
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

// python prepares Python in the folder of the package, with the launcher of this build.
func python(t *testing.T, modules []string, args ...string) (context.Context, *exec.Cmd) {
	t.Helper()
	program := needPython(t, modules...)
	ctx := limited(t)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join("..", "..", "python")
	cmd.Env = append(os.Environ(), "JACOBI_LAUNCHER="+filepath.Join(bin, "launcher"), "JACOBI_DEVICE_BACKEND=cpu",
		"PYTHONDONTWRITEBYTECODE=1")
	return ctx, cmd
}

// The Python package passes its own tests.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	ctx, cmd := python(t, []string{"numpy", "pytest"}, "-m", "pytest", "-q", "-p", "no:cacheprovider")
	out := finish(t, ctx, cmd)
	if out.code != 0 {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// The package that pip installs from a tree finds the launcher that is built there, and says how to build it.
func TestPythonInstalls(t *testing.T) {
	t.Parallel()
	program := needPython(t, "numpy", "venv", "ensurepip", "setuptools", "wheel")
	tree := t.TempDir()
	if err := errors.Join(os.CopyFS(filepath.Join(tree, "python"), os.DirFS(filepath.Join("..", "..", "python"))),
		os.WriteFile(filepath.Join(tree, "Makefile"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(program string, args ...string) outcome {
		t.Helper()
		ctx := limited(t)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = tree
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "JACOBI_") || strings.HasPrefix(v, "PYTHON") || strings.HasPrefix(v, "PIP_")
		}), "PATH="+filepath.Dir(program)+":/usr/bin:/bin")
		return finish(t, ctx, cmd)
	}
	for _, args := range [][]string{{program, "-m", "venv", "--system-site-packages", "venv"},
		{"venv/bin/pip", "install", "-q", "--no-index", "--no-build-isolation", "./python"}} {
		if out := run(args[0], args[1:]...); out.code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
	}
	const script = `import jacobisolver, numpy
print("/venv/" in jacobisolver.__file__)
try:
    print(jacobisolver.solve(nx=257, ny=257, source="sin(pi*x)", top=1, right="neumann(0)", ranks=2).verdict)
except jacobisolver.SessionError as e:
    print(e)`
	says := func(want string) {
		t.Helper()
		if out := run("venv/bin/python", "-c", script); out.stdout != "True\n"+want+"\n" {
			t.Errorf("%s%s\nwant %s", out.stdout, out.stderr, want)
		}
	}
	says("there is no program launcher, neither beside jacobisolver nor on PATH: `make build` in " + tree +
		" builds it, or JACOBI_LAUNCHER names it")
	if err := os.Symlink(bin, filepath.Join(tree, "bin")); err != nil {
		t.Fatal(err)
	}
	says("met")
}

// Ranks on other hosts read arrays from a directory that they see. Without it the problem is refused, and the session
// goes on.
func TestPythonOverHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	dir := t.TempDir()
	const script = `import sys, numpy, jacobisolver
source = numpy.linspace(0, 1, 65 * 97).reshape(65, 97)
with jacobisolver.Session(host="a:1,b:2", directory=sys.argv[1], arguments=["--ssh", sys.argv[2]]) as far:
    for more in ({"method": "jacobi", "tolerance": 0.1}, {}):
        try:
            r = far.solve(source=source, **more)
            print(len(r.report["ranks"]), (r.field == jacobisolver.solve(source=source, **more).field).all())
        except jacobisolver.SolveError as e:
            print(e)
    print(far.solve(nx=33, top=1).verdict)`
	solve := func(all string) {
		t.Helper()
		ctx, cmd := python(t, []string{"numpy"}, append([]string{"-c", script, dir}, c.ssh("user")[1:]...)...)
		want := all + "\n1 True\nmet\n" // rank 0 does small problems here
		if out := finish(t, ctx, c.on(cmd)); out.code != 0 || out.stdout != want {
			t.Errorf("exit code %d\n%s%s\nwant %s", out.code, out.stdout, out.stderr, want)
		}
	}
	solve("3 True")
	c.sh("nsenter", "--mount", "--target", fmt.Sprint(c.processes("b", "sshd")[0]), "mount", "-t", "tmpfs", "none", dir)
	const none = "source: no such file or directory"
	solve("rank 1: " + none + "; rank 2: " + none)
}
