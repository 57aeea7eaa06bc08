package launch

import (
	"os"
	"strconv"
	"strings"
)

// oomKills returns how many processes the kernel has killed for want of memory so far, 0 where it does not say.
func oomKills() int {
	stat, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return countOf(string(stat), "oom_kill")
}

// countOf returns the number behind name in lines of names and numbers.
func countOf(stat, name string) int {
	for line := range strings.Lines(stat) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value)) // 0 for what is no number
			return n
		}
	}
	return 0
}
