// Package version says which build this is. All ranks of a run must be of one version.
package version

import "runtime/debug"

// stamp is set by the linker; see the Makefile.
var stamp string

// String returns the stamped version, or what the Go build recorded, or "devel".
func String() string {
	if stamp != "" {
		return stamp
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
