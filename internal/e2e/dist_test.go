package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	archive, err := os.ReadFile(filepath.Join(dir, name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(archive), name); string(sums) != want {
		t.Errorf("SHA256SUMS is %q, want %q", sums, want)
	}
	unpacked := t.TempDir()
	names := unpack(t, filepath.Join(dir, name+".tar.gz"), unpacked)
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
