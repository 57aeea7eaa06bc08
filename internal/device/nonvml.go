//go:build !(nvml && cgo)

package device

import "fmt"

// OpenNVML fails: this program was built without go-nvml. That one takes cgo, and a linker that leaves NVML's functions
// to be found when they are called (-ldflags '-extldflags=-Wl,-z,lazy'): where the linker resolves all at once, as
// Ubuntu's does by default, a program that holds it would not start on a machine without NVML.
func OpenNVML() (Inventory, error) {
	return nil, fmt.Errorf("%w: this program was built without it (it takes cgo and -tags nvml)", ErrNoNVML)
}
