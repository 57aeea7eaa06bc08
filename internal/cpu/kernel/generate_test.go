package kernel

import (
	"testing"

	"jacobi/internal/cpu/asmtest"
)

func TestGenerated(t *testing.T) { asmtest.Generated(t, "kernel") }
