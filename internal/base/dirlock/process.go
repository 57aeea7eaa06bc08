package dirlock

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// begunAt returns the start time of a process of this host, in ticks of its clock. A process number may be used again,
// but not with the same start time.
func begunAt(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold any byte. The start time is the 20th field after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}
