package stats

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processStatus describes this process.
const processStatus = "/proc/self/status"

// ResidentMemory returns the bytes of this process that are resident, now and at the peak, as the kernel reports them.
func ResidentMemory() (now, peak int64, err error) {
	status, err := os.ReadFile(processStatus)
	if err != nil {
		return 0, 0, err
	}
	now, _ = statusBytes(status, "VmRSS")
	peak, ok := statusBytes(status, "VmHWM")
	if !ok {
		return now, 0, fmt.Errorf("%s has no VmHWM", processStatus)
	}
	return now, peak, nil
}

// statusBytes returns a number of bytes from the text of processStatus.
func statusBytes(status []byte, name string) (int64, bool) {
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == name+":" && string(f[2]) == "kB" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
