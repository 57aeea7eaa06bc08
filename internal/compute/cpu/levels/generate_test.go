package levels

import (
	"testing"

	"jacobi/internal/compute/cpu/asmtest"
)

func TestGenerated(t *testing.T) { asmtest.Generated(t, "levels") }
