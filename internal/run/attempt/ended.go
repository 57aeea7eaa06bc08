package attempt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"jacobi/configs"
	"jacobi/internal/base/regular"
	"jacobi/internal/observe/output"
	"jacobi/internal/run/launch"
)

// Ended describes a run that has ended.
type Ended struct {
	launch.Outcome
	RunID string
	Files []string // files that are in place
	Fault error    // why Files is unknown, or why files are not where they belong
}

// end collects what the run left in output.dir. It is called after the ranks have ended, so the files do not change.
func (h *holdings) end(o configs.Output, out launch.Outcome, runID string, stdout io.Writer) Ended {
	e := Ended{Outcome: out, RunID: runID}
	if h.out == nil {
		return e
	}
	e.Fault = h.within(func() error { h.stop(); return nil })
	if e.Fault != nil {
		*h = holdings{} // the locks end with this process
		return e
	}
	h.stop = nil
	if e.Files, e.Fault = h.out.Committed(); e.Fault == nil && o.ToStdout() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // a slow reader may block the copy; Ctrl-C must end it
		e.Fault = h.out.CopyTo(stdout)
	}
	return e
}

// Left describes the contents of output.dir after a run that failed.
func (e Ended) Left(o configs.Output) string {
	if len(e.Files) == 0 && e.Fault != nil {
		return fmt.Sprintf("output.dir %q: %v", o.Dir, e.Fault)
	}
	if len(e.Files) == 0 {
		return "outputs of earlier runs are as they were"
	}
	paths := make([]string, len(e.Files))
	for i, name := range e.Files {
		paths[i] = filepath.Join(o.Dir, name)
	}
	return "the outputs of this run are in place: " + strings.Join(paths, ", ")
}

// maxReport is far larger than the report of the largest run, in bytes.
const maxReport = 256 << 20

// ReadReport decodes the report that a rank sent or, if that was lost, reads its file.
func (e Ended) ReadReport(o configs.Output) (output.Report, error) {
	var r output.Report
	sent := e.Report
	if sent == nil {
		if o.Report == "" || o.Report == configs.Stdout {
			return r, errors.New("it was not sent, and output.report names no file")
		}
		var err error
		if sent, err = regular.ReadFile(filepath.Join(o.Dir, o.Report), maxReport); err != nil {
			return r, err
		}
	}
	if err := json.Unmarshal(sent, &r); err != nil {
		return r, err
	}
	if r.RunID != e.RunID {
		return r, fmt.Errorf("it was not sent, and %s is of run %s", filepath.Join(o.Dir, o.Report), r.RunID)
	}
	return r, nil
}
