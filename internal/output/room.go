package output

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"jacobi/configs"
	"jacobi/solver"
)

// Room is how many bytes the files of a run take at most.
type Room struct{ Field, Picture, History, Report int64 }

// The report's room. It is a matter of its text; one that is longer takes more.
const (
	reportBytes     = 32 << 10
	rankReportBytes = 4 << 10
)

// mostHistory bounds the room that is reserved for a history: max_iterations is often a number that no run reaches.
// When a longer history finds the disk full, the field gives way.
const mostHistory = 1 << 20

// RoomFor returns the room for the files of a run. An error says that the field is too large for a file.
func RoomFor(o configs.Output, m solver.Mesh, ranks, maxIterations int) (r Room, err error) {
	if o.Field != "" {
		if r.Field, err = FieldBytes(m); err != nil {
			return r, err
		}
	}
	if o.Picture != "" {
		r.Picture = pictureBytes(m)
	}
	if o.History != "" {
		line := len(strconv.Itoa(maxIterations)) + normBytes
		r.History = min(int64(len(historyHeader))+int64(line)*int64(min(maxIterations, mostHistory)), mostHistory)
	}
	if o.Report != "" {
		r.Report = reportBytes + int64(ranks)*rankReportBytes
	}
	return r, nil
}

// Bytes returns the sum.
func (r Room) Bytes() int64 { return r.Field + r.Picture + r.History + r.Report }

// IsFull says whether err comes from a disk, or a quota, without room.
func IsFull(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
