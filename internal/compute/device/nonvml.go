//go:build !(nvml && cgo)

package device

import "fmt"

// OpenNVML fails: this program was built without go-nvml. Building with it requires cgo and a linker that leaves NVML's
// functions unresolved until they are called (-ldflags '-extldflags=-Wl,-z,lazy'). A linker that resolves all functions
// at start, as Ubuntu's does by default, makes a program that cannot start on a machine without NVML.
func OpenNVML() (Inventory, error) {
	return nil, fmt.Errorf("%w: this program was built without it (it takes cgo and -tags nvml)", ErrNoNVML)
}
