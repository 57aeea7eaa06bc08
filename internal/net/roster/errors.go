package roster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// TimeoutError reports that ranks did not answer in time.
type TimeoutError struct {
	Op    string // the operation that waited, such as `gather "stripes"`
	Ranks []int  // the ranks that were missing
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: timed out waiting for %s", e.Op, FormatRanks(e.Ranks))
}

// Timeout reports that the error is a timeout, as net.Error has it.
func (e *TimeoutError) Timeout() bool { return true }

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// AbortError says why a run ended early: which rank failed, and what happened to it.
type AbortError struct {
	Rank  int    `json:"rank"` // -1: the launcher
	Host  string `json:"host,omitempty"`
	Cause string `json:"cause"`
	// Consequence means that the rank failed because others had failed before (see IsConsequence).
	Consequence bool `json:"consequence,omitempty"`
	Run         int  `json:"run,omitempty"`       // of a session, which goes on; 0: the abort ends everything
	Stopped     bool `json:"stopped,omitempty"`   // the cause is ErrStopped
	Cancelled   bool `json:"cancelled,omitempty"` // the cause is ErrCancelled
}

// Why a run ended before its first iteration: a rank was told to end, or the launcher does not want the run any more.
var (
	ErrStopped   = errors.New("the rank was told to end")
	ErrCancelled = errors.New("the request was cancelled")
)

// Is makes errors.Is tell ErrStopped and ErrCancelled.
func (e *AbortError) Is(target error) bool {
	return e.Stopped && target == ErrStopped || e.Cancelled && target == ErrCancelled
}

func (e *AbortError) Error() string {
	who := "the launcher"
	if e.Rank >= 0 {
		who = fmt.Sprintf("rank %d", e.Rank)
	}
	if e.Host != "" {
		who += " on " + e.Host
	}
	return "run aborted by " + who + ": " + e.Cause
}

// IsConsequence reports whether err is the consequence of another rank's failure: the rank was told to end, or it timed
// out. The first cause of a run's end is one of the other errors.
func IsConsequence(err error) bool {
	if a, ok := errors.AsType[*AbortError](err); ok && a != nil {
		return true
	}
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// FormatRanks returns ranks, which may be in any order, as "rank 4" or "ranks 0-4, 6".
func FormatRanks(ranks []int) string {
	if len(ranks) == 0 {
		return "no rank"
	}
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + formatRuns(ranks)
}

func formatRuns(ranks []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(ranks)))
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(sorted[i]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(sorted[i]), strconv.Itoa(sorted[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", sorted[i], sorted[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
