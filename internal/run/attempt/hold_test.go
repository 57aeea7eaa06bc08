package attempt

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// notes is a Screen that keeps its notices.
type notes struct {
	Screen
	all []string
}

func (n *notes) Notice(text string) { n.all = append(n.all, text) }

// Whose files a run replaces is a notice, which a screen shows once, however often the run starts again.
func TestReplacedFilesAreANotice(t *testing.T) {
	cfg := configs.Default()
	cfg.Output.Dir = t.TempDir()
	ended := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	data, err := json.Marshal(output.Report{RunID: "old", Problem: "gtc2019", Ended: ended})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Output.Dir, "report.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	scr := &notes{}
	h, err := hold(cfg, "new", Options{Screen: scr})
	if err != nil {
		t.Fatal(err)
	}
	defer h.close(t.Context())
	want := []string{cfg.Output.Dir + " has the files of run old (gtc2019), which ended on 2026-11-23 12:00:00: " +
		"this run replaces them"}
	if !slices.Equal(scr.all, want) {
		t.Errorf("noticed %q, want %q", scr.all, want)
	}
}
