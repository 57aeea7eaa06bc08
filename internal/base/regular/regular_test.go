package regular_test

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"jacobi/internal/base/regular"
)

// Only regular files are opened, without a wait: an open that waits would run into the deadline of the test.
func TestOnlyRegularFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.WriteFile("file", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"to-pipe": "pipe", "to-file": "file", "to-proc": "/proc/self/status"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		flag int
		want string
	}{
		{"pipe", os.O_RDONLY, "open pipe: a named pipe, not a regular file"},
		{"pipe", os.O_WRONLY, "open pipe: a named pipe, not a regular file"},
		{"pipe", os.O_RDWR, "open pipe: a named pipe, not a regular file"},
		{"pipe", os.O_WRONLY | os.O_CREATE | os.O_TRUNC, "open pipe: a named pipe, not a regular file"},
		{"to-pipe", os.O_RDONLY, "open to-pipe: a named pipe, not a regular file"},
		{"dir", os.O_RDONLY, "open dir: a directory, not a regular file"},
		{"dir", os.O_WRONLY, "open dir: a directory, not a regular file"},
		{"socket", os.O_RDONLY, "open socket: a socket, not a regular file"},
		{"/dev/zero", os.O_RDONLY, "open /dev/zero: a device, not a regular file"},
		{"to-proc", os.O_RDONLY, "open to-proc: a file of the kernel (procfs), not a regular file"},
		{"/sys/kernel/mm/transparent_hugepage/enabled", os.O_RDONLY,
			"open /sys/kernel/mm/transparent_hugepage/enabled: a file of the kernel (sysfs), not a regular file"},
		{"to-file", os.O_RDONLY | syscall.O_NOFOLLOW, "open to-file: a symbolic link, not a regular file"},
		{"absent", os.O_RDONLY, "open absent: no such file or directory"},
	} {
		f, err := regular.OpenFile(c.path, c.flag, 0o600)
		if err == nil || err.Error() != c.want || f != nil {
			t.Errorf("%s, flags %#x: error %v, want %s", c.path, c.flag, err, c.want)
		}
		if _, ok := err.(*fs.PathError); !ok { // callers rely on this type
			t.Errorf("%s: error of type %T", c.path, err)
		}
	}
	open, err := os.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, path := range []string{"file", "to-file", fmt.Sprintf("/proc/self/fd/%d", open.Fd())} {
		if data, err := regular.ReadFile(path, 4); err != nil || string(data) != "text" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "read " + path + ": more than 4 bytes"
	if data, err := regular.ReadFile(path, 4); err == nil || err.Error() != want || data != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestReadPrivate(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", "link"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := regular.ReadPrivate("file", 6); err != nil || string(data) != "secret" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.WriteFile("open", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("open", 0o640); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"link": "open link: a symbolic link, not a regular file",
		"pipe": "open pipe: a named pipe, not a regular file",
		"open": "open open: mode 0640: its owner alone may have rights to it",
	} {
		if _, err := regular.ReadPrivate(path, 6); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}
