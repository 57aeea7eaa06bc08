package launch

import (
	"os"
	"strconv"
	"strings"
)

// oomKills returns how many processes the kernel has killed so far because memory ran out; 0 if the kernel does not
// say.
func oomKills() int {
	stat, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return countOf(string(stat), "oom_kill")
}

// countOf returns the number that follows name in lines of names and numbers; 0 if there is none.
func countOf(stat, name string) int {
	for line := range strings.Lines(stat) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value)) // 0 if it is not a number
			return n
		}
	}
	return 0
}
