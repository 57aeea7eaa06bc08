package driver

import (
	"fmt"
	"regexp"
	"strconv"
)

var (
	ptxVersions = regexp.MustCompile(`(?m)^\.version\s+(\d+)\.(\d+)`)
	ptxTargets  = regexp.MustCompile(`(?m)^\.target\s+sm_(\d+)`)
)

// ptxNeeds returns text to follow "the driver is for CUDA 12.4": the CUDA version that the PTX is for, or "" if the PTX
// does not tell.
func ptxNeeds(ptx []byte) string {
	m := ptxVersions.FindSubmatch(ptx)
	if m == nil {
		return ""
	}
	major, minor := number(m[1]), number(m[2])
	// From the release notes in NVIDIA's "Parallel Thread Execution ISA".
	switch {
	case major == 8 && minor > 5:
		minor++ // CUDA 12.6 had the PTX version of 12.5
		fallthrough
	case major >= 7 && major <= 9:
		return fmt.Sprintf(", the PTX needs %d.%d", major+4, minor)
	}
	return fmt.Sprintf(", the PTX is version %d.%d", major, minor)
}

// ptxTarget returns ten times the lowest compute capability that the PTX runs on, or 0 if the PTX does not tell.
func ptxTarget(ptx []byte) int {
	m := ptxTargets.FindSubmatch(ptx)
	if m == nil {
		return 0
	}
	return number(m[1])
}

// number returns the value of a string of digits.
func number(digits []byte) int {
	// The patterns above match nothing but digits. For too many digits Atoi returns the largest int.
	n, _ := strconv.Atoi(string(digits))
	return n
}
