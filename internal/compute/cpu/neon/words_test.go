package neon

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	written      = regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.*)$`)
	disassembled = regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t([0-9a-f]{8}) \t(.*)$`)
)

// TestWords disassembles every word of the generated files, and some of registers that they do not have. Each must be
// the instruction in its comment.
func TestWords(t *testing.T) {
	objdump, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("NOT RUN: TestWords needs Debian's binutils-aarch64-linux-gnu")
	}
	w := New("")
	for _, f := range []func(Type, Reg, Reg, Reg){w.Add, w.Subtract, w.Multiply, w.Greater} {
		f(Float32, 31, 1, 16)
		f(Float64, 2, 30, 9)
	}
	for _, f := range []func(Reg, Reg){w.WidenLow, w.WidenHigh, w.NarrowLow, w.NarrowHigh, w.Floor, w.ToInteger} {
		f(31, 6)
		f(5, 16)
	}
	text := w.out.String()
	for _, name := range []string{"../kernel/neon_arm64.s", "../levels/neon_arm64.s"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(file)
	}
	words, code := written.FindAllStringSubmatch(text, -1), []byte(nil)
	for _, m := range words {
		word, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		code = binary.LittleEndian.AppendUint32(code, uint32(word))
	}
	if n := strings.Count(text, "WORD"); n != len(words) {
		t.Fatalf("%d of %d words have a comment", len(words), n)
	}
	name := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(name, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), objdump, "-D", "-z", "-b", "binary", "-m", "aarch64",
		name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := disassembled.FindAllStringSubmatch(string(out), -1)
	if len(lines) != len(words) {
		t.Fatalf("%d words, %d instructions", len(words), len(lines))
	}
	wrong := 0
	for i, m := range words {
		if got := strings.ReplaceAll(lines[i][2], "\t", " "); lines[i][1] != m[1] || got != m[2] {
			if wrong++; wrong <= 10 {
				t.Errorf("0x%s is %s, want %s", m[1], got, m[2])
			}
		}
	}
}
