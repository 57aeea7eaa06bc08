package device

import "errors"

// Health are the readings of a GPU that tell whether it is sound. Each may be Unknown.
type Health struct {
	Celsius     int
	Milliwatts  int
	SMClock     int // MHz
	MemoryClock int // MHz
	UsedBytes   int // of memory, by all processes and the driver
	Corrected   int // ECC errors since the driver was loaded, in all memories
	Uncorrected int
	// Throttled are the reasons why the clocks are lower than they could be under load; empty if there are none. An
	// idle GPU and clocks that an administrator has set are no reasons.
	Throttled []string
}

// HealthReader reads the health of GPUs. The Inventory of OpenNVML is one.
type HealthReader interface {
	// Health reads the GPU with this UUID.
	Health(uuid string) (Health, error)
}

// OpenHealth opens what reads the health of the GPU with this UUID. Not every GPU can be read: NVML does not know a
// slice of one.
func OpenHealth(uuid string) (r HealthReader, closes func() error, err error) {
	nvml, err := OpenNVML()
	if err != nil {
		return nil, nil, err
	}
	r, ok := nvml.(HealthReader)
	if !ok {
		err = errors.New("NVML reads no health")
	} else if _, err = r.Health(uuid); err == nil {
		return r, nvml.Close, nil
	}
	_ = nvml.Close() // err says more
	return nil, nil, err
}
