package configs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The launcher passes the contents of its files to ranks on other machines.
func TestInlined(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"password": "hunter2\n", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := NATS{URL: "nats://h", User: "u", PasswordFile: filepath.Join(dir, "password"), CA: "inline:PEM"}
	got, err := n.Inlined()
	if want := (NATS{URL: "nats://h", User: "u", PasswordFile: "inline:hunter2\n", CA: "inline:PEM"}); err != nil ||
		got != want {
		t.Errorf("got %#v, %v", got, err)
	}
	if n.PasswordFile != filepath.Join(dir, "password") {
		t.Errorf("changed: %#v", n)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"nowhere": "open ", "empty": " is empty", "pipe": ": a named pipe, not a regular file",
	} {
		n.CA = filepath.Join(dir, value)
		if _, err := n.Inlined(); err == nil || !strings.HasPrefix(err.Error(), "nats.ca: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", value, err)
		}
	}
}
