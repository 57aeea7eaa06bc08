// Package version reports the version of the build. All ranks of a run must have the same version.
package version

import "runtime/debug"

// stamp is set by the linker; see the Makefile.
var stamp string

// String returns the stamped version, or the version that the Go build recorded, or "devel".
func String() string {
	if stamp != "" {
		return stamp
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
