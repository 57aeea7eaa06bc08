package attempt

import (
	"testing"

	"jacobi/configs"
)

// After the ranks were killed, output.dir holds the files that the launcher has put there.
func TestLeft(t *testing.T) {
	o := configs.Output{Dir: "out"}
	if got := (Ended{}).Left(o); got != "outputs of earlier runs are as they were" {
		t.Error(got)
	}
	e := Ended{Files: []string{"history.csv", "report.json"}}
	if got := e.Left(o); got != "the outputs of this run are in place: out/history.csv, out/report.json" {
		t.Error(got)
	}
}
