// Package reduction measures the sum of an array, for launcher probe: within a GPU by the steps in which reductions are
// taught, the kernels probe_sum_*.cu (ladder.go), over several GPUs with three ways to gather the partial sums
// (overgpus.go), and on the CPU (oncpu.go). The values follow from their index, so the CPU knows every sum exactly
// (values.go).
package reduction

// Step is the measurement of one way to add values on one device.
type Step struct {
	Name    string  `json:"name"`
	Type    Type    `json:"type"`
	Values  int     `json:"values"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"` // bytes of the values / time
	StepUp  float64 `json:"step_speed_up"`    // against the step before; 1 for the first
	SpeedUp float64 `json:"speed_up"`         // against the first step
	OfCopy  float64 `json:"of_copy"`          // Rate divided by what the device's copy reads and writes a second
	Error   float64 `json:"relative_error"`   // against the exact sum; 0 for integers
}

// Over is the measurement of a sum over several GPUs.
type Over struct {
	GPUs       int     `json:"gpus"`
	Gather     string  `json:"gather"` // the way of the partial sums: host, peer or nats
	Exact      bool    `json:"exact"`
	Type       Type    `json:"type"`
	Values     int     `json:"values"`
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"bytes_per_second"`
	SpeedUp    float64 `json:"speed_up"` // against one GPU with the same way
	Efficiency float64 `json:"efficiency"`
	Error      float64 `json:"relative_error"`
}

// relate fills in the speed-ups of the steps of one type and number of values.
func relate(steps []Step) {
	for i := range steps {
		steps[i].StepUp, steps[i].SpeedUp = 1, steps[0].Seconds/steps[i].Seconds
		if i > 0 {
			steps[i].StepUp = steps[i-1].Seconds / steps[i].Seconds
		}
	}
}

// tries is how often each way runs; the fastest run counts.
const tries = 5
