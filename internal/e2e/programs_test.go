package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A program that can find methods by their names, as package text/template does, holds every exported method of every
// type: some 5 MB more.
func TestProgramsHoldNoTemplates(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"launcher", "jacobi-rank"} {
		data, err := os.ReadFile(filepath.Join(bin, program))
		if err != nil {
			t.Fatal(err)
		}
		for function, want := range map[string]bool{
			"strings.Replace": true, "text/template.(*state).evalField": false,
		} {
			if got := bytes.Contains(data, []byte(function)); got != want {
				t.Errorf("%s holds %s: %t, want %t", program, function, got, want)
			}
		}
	}
}
