package driver

import (
	"testing"

	"jacobi/cuda/driver/drivertest"
)

func TestPTXNeeds(t *testing.T) {
	for ptx, want := range map[string]string{
		"// a comment\n\n.version 7.0\n.target sm_80\n": ", the PTX needs 11.0",
		".version 8.5\n":  ", the PTX needs 12.5",
		".version 8.6\n":  ", the PTX needs 12.7",
		".version 8.8\n":  ", the PTX needs 12.9",
		".version 9.0\n":  ", the PTX needs 13.0",
		".version 10.3\n": ", the PTX is version 10.3",
		"":                "",
	} {
		if got := ptxNeeds([]byte(ptx)); got != want {
			t.Errorf("%q: got %q, want %q", ptx, got, want)
		}
	}
}

func TestPTXThatTheDriverOrTheGPUIsTooOldFor(t *testing.T) {
	c := bound(t, must(open(drivertest.Build(t, "-DRUN", "-DPTX=222")))(t))
	_, err := c.Load([]byte(".version 9.0\n.target sm_90a\n"))
	checkError(t, err, ErrUnsupportedPTX, "cuModuleLoadDataEx: the provided PTX was compiled with an unsupported "+
		"toolchain. "+
		"(CUDA_ERROR_UNSUPPORTED_PTX_VERSION): the driver is for CUDA 12.4, the PTX needs 13.0\n"+
		"ptxas application ptx input, line 1; fatal: Unsupported .version")
	c = bound(t, must(open(drivertest.Build(t, "-DRUN", "-DPTX=218")))(t))
	c.Device.Major, c.Device.Minor = 7, 5
	_, err = c.Load([]byte(".version 7.0\n.target sm_80\n"))
	checkError(t, err, ErrInvalidPTX, "cuModuleLoadDataEx: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX): "+
		"the GPU has compute capability 7.5, the PTX needs 8.0\nptxas application ptx input, line 1; fatal: "+
		"Unsupported .version")
}
