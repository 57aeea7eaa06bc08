// Package transpose measures the transposing of a matrix, for launcher probe: within a GPU by the kernels
// probe_transpose_*.cu (ongpu.go), over several GPUs by blocks (slices.go, overgpus.go), and on the CPU (oncpu.go).
// Every result is compared with the matrix value by value (matrix.go).
package transpose

// Kernel is the measurement of one way to copy or transpose a matrix on one device.
type Kernel struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"` // read and written: 2 * bytes / time
	OfCopy  float64 `json:"of_copy"`          // Rate divided by that of the device's own copy of the same bytes
}

// newKernel returns the measurement of a matrix of the given size. copySeconds is the time of the copy.
func newKernel(name string, bytes int64, seconds, copySeconds float64) Kernel {
	return Kernel{Name: name, Seconds: seconds, Rate: 2 * float64(bytes) / seconds, OfCopy: copySeconds / seconds}
}

// Over is the measurement of the transpose of a matrix that is divided among GPUs.
type Over struct {
	GPUs       int     `json:"gpus"`
	Queues     string  `json:"queues"` // blocking or asynchronous
	Way        string  `json:"way"`    // of blocks between GPUs: peer, host; or none
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"bytes_per_second"` // 2 * bytes / time
	SpeedUp    float64 `json:"speed_up"`         // against one GPU with the same queues
	Efficiency float64 `json:"efficiency"`       // SpeedUp / GPUs
}

// Matrix is the size of a matrix: NY rows of NX values of Value bytes, 4 or 8.
type Matrix struct {
	NX    int `json:"nx"`
	NY    int `json:"ny"`
	Value int `json:"value_bytes"`
}

// Bytes returns the size in bytes.
func (m Matrix) Bytes() int64 { return int64(m.NX) * int64(m.NY) * int64(m.Value) }

// suffix returns the end of the names of the kernels for the matrix's values.
func (m Matrix) suffix() string {
	if m.Value == 4 {
		return "_f32"
	}
	return "_f64"
}
