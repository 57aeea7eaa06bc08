package kernel

import (
	"testing"

	"jacobi/internal/compute/cpu/asmtest"
)

func TestGenerated(t *testing.T) { asmtest.Generated(t, "kernel") }
