package device

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
