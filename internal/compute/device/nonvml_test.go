//go:build !(nvml && cgo)

package device

import (
	"errors"
	"testing"
)

func TestBuiltWithoutNVML(t *testing.T) {
	_, err := OpenNVML()
	if want := "NVML is not available: this program was built without it (it takes cgo and -tags nvml)"; !errors.Is(err,
		ErrNoNVML) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
