package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// unprivileged fails unless the first process of a container runs as another user than root, without capabilities, and
// can gain none.
func (c *composed) unprivileged(service, id string) {
	c.t.Helper()
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
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
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
