package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// distARM64 makes the archive for arm64, once for all tests, and returns its folder.
var distARM64 = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(bin, "dist")
	return dir, makeTarget("dist", "ARCHES=arm64", "DIST="+dir, "DIST_TIME=1000000000")
})

// An archive holds the two programs for its processor and what a user needs beside them, with nothing in it that
// differs between two people who make it.
func TestDist(t *testing.T) {
	t.Parallel()
	qemu, libc := needARM64(t)
	dir, name := needDist(t), "jacobi-"+version+"-linux-arm64"
	archive := name + ".tar.gz"
	if got, want := readText(t, dir, "SHA256SUMS"), rowsOf(t, filepath.Join(dir, archive), 0)+"  "+archive+"\n"; got !=
		want {
		t.Errorf("SHA256SUMS is %q, want %q", got, want)
	}
	unpacked := t.TempDir()
	names := unpack(t, filepath.Join(dir, archive), unpacked)
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	for _, file := range []string{"bin/launcher", "bin/jacobi-rank", "LICENSE", "README.md", "configs/quickstart.yaml",
		"configs/wing.png", "python/pyproject.toml", "python/jacobisolver/py.typed"} {
		if !slices.Contains(names, name+"/"+file) {
			t.Errorf("%s is missing in %v", file, names)
		}
	}
	for _, program := range []string{"launcher", "jacobi-rank"} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		got := finish(t, ctx, command(ctx, unpacked, qemu, "-L", libc, filepath.Join(unpacked, name, "bin", program),
			"--version"))
		if got.code != 0 || !strings.Contains(got.stdout, version) {
			t.Errorf("%s --version: exit code %d\n%s%s", program, got.code, got.stdout, got.stderr)
		}
	}
}

// needDist returns the folder of the archive for arm64, or skips the test visibly.
func needDist(t *testing.T) string {
	t.Helper()
	if os.Getenv("E2E_BIN") != "" {
		t.Skipf("NOT RUN: %s builds programs, and these were built elsewhere", t.Name())
	}
	dir, err := distARM64()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// unpack unpacks an archive into dir, checks what its headers say of the maker, and returns the names of its files.
func unpack(t *testing.T, archive, dir string) (names []string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("gzip has the name %q and the time %v", z.Name, z.ModTime)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 1_000_000_000 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s: %v, %d:%d, %s:%s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		mode, program := int64(0o644), strings.Contains(h.Name, "/bin/")
		if h.Typeflag == tar.TypeDir || program {
			mode = 0o755
		}
		if h.Mode != mode {
			t.Errorf("%s: mode %o, want %o", h.Name, h.Mode, mode)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			names = append(names, h.Name)
			var to *os.File
			if to, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700); err == nil {
				_, err = io.Copy(to, r)
				err = errors.Join(err, to.Close())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// needARM64 skips a test visibly if no program for arm64 can be started. The programs are linked with the C library,
// which they need to open CUDA's driver.
func needARM64(t *testing.T) (qemu, libc string) {
	t.Helper()
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skipf("NOT RUN: %s needs Debian's qemu-user-static", t.Name())
	}
	libc = "/usr/aarch64-linux-gnu"
	if _, err := os.Stat(libc); err != nil {
		t.Skipf("NOT RUN: %s needs Debian's libc6-arm64-cross", t.Name())
	}
	return qemu, libc
}

// onARM64 returns a function that prepares commands that run the jacobi-rank of the archive for arm64.
func onARM64(t *testing.T) func(ctx context.Context, dir string, args []string) *exec.Cmd {
	t.Helper()
	qemu, libc := needARM64(t)
	const name = "jacobi-" + version + "-linux-arm64"
	dist, dir := needDist(t), t.TempDir()
	unpack(t, filepath.Join(dist, name+".tar.gz"), dir)
	rank := filepath.Join(dir, name, "bin", "jacobi-rank")
	return func(ctx context.Context, dir string, args []string) *exec.Cmd {
		return command(ctx, dir, qemu, append([]string{"-L", libc, rank}, args...)...)
	}
}

// counted has the packages whose numbers enter the field, a norm, the decision to stop or the results.
var counted = []string{
	"./solver", "./solver/multigrid", "./solver/multigrid/aggregation", "./halo/...", "./internal/compute/cpu/...",
	"./internal/compute/elementary", "./internal/compute/problem", "./internal/compute/reference",
	"./internal/compute/results", "./internal/compute/richardson", "./internal/run/checkpoint",
}

var fusedInstruction = regexp.MustCompile(`\((\S+\.go):(\d+)\)\s+(FN?M(?:ADD|SUB)[SD])\s`)

// On arm64 the compiler may fuse a product with a following sum, which rounds once instead of twice. The code of the
// counted packages must have fused operations only where the source calls math.FMA: all other products are converted
// explicitly.
func TestNothingIsFused(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_BIN") != "" {
		t.Skipf("NOT RUN: %s compiles, and these programs were built elsewhere", t.Name())
	}
	args := append([]string{"build", "-tags", "netgo,osusergo", "-gcflags=-S"}, counted...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sources := map[string][]string{}
	asked, reported := 0, map[string]bool{}
	for _, m := range fusedInstruction.FindAllStringSubmatch(string(out), -1) {
		file, at := m[1], m[1]+":"+m[2]
		if sources[file] == nil {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = strings.Split(string(text), "\n")
		}
		n, _ := strconv.Atoi(m[2])
		switch line := sources[file][n-1]; {
		case strings.Contains(line, "math.FMA("):
			asked++
		case !reported[at]:
			reported[at] = true
			t.Errorf("%s: %s: convert the product: float64(x * y)\n%s", at, m[3], line)
		}
	}
	if asked < 10 {
		t.Errorf("%d instructions of math.FMA were found: has their name changed?", asked)
	}
}
