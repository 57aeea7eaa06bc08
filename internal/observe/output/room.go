package output

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/solver"
)

// Room is the number of bytes to reserve for each file of a run.
type Room struct{ Field, Picture, History, Report, Trace int64 }

// The room for the report and the trace, estimates: they may be longer, and then take more space than was reserved.
const (
	reportBytes     = 32 << 10
	rankReportBytes = 4 << 10
	passTraceBytes  = 2 << 10  // of a rank
	cycleTraceBytes = 32 << 10 // of a rank
)

// maxHistory bounds the room reserved for a history, because few runs reach max_iterations. If a longer history finds
// the disk full, the run gives up the field.
const maxHistory = 1 << 20

// RoomFor returns the room for the files of a run on a mesh with the spacings hx and hy. It fails if the field is too
// large for a file.
func RoomFor(o configs.Output, m solver.Mesh, hx, hy float64, ranks int, s configs.Solver) (r Room, err error) {
	if o.Field != "" {
		if r.Field, err = FieldBytes(o, m); err != nil {
			return r, err
		}
		for _, a := range o.Arrays() {
			if !o.OneFile() {
				r.Field += ArrayFormat("", m, hx, hy, a.Mask, o.Float32).rows(m)
			}
		}
	}
	if o.Picture != "" {
		r.Picture = pictureBytes(grid{m.NX, m.NY, hx, hy})
	}
	if o.History != "" {
		line, norms := len(strconv.Itoa(s.MaxIterations))+normBytes, s.MaxIterations/max(1, s.NormEvery)
		r.History = min(int64(len(historyHeader))+int64(line)*int64(min(norms, maxHistory)), maxHistory)
	}
	if o.Report != "" {
		r.Report = reportBytes + int64(ranks)*rankReportBytes
	}
	return r, nil
}

// TraceRoom returns the room for the trace of a run.
func TraceRoom(c configs.Config, ranks int) int64 {
	if c.Output.Trace == "" {
		return 0
	}
	bytes := int64(passTraceBytes)
	if c.Solver.Entry().Levels {
		bytes = cycleTraceBytes
	}
	return int64(ranks) * int64(min(2*c.Trace.Passes, c.Solver.MaxIterations)) * bytes
}

// Bytes returns the sum.
func (r Room) Bytes() int64 { return r.Field + r.Picture + r.History + r.Report + r.Trace }

// IsFull reports whether err says that a disk is full or a quota exceeded.
func IsFull(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
