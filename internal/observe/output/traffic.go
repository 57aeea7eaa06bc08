package output

// TrafficReport is what went through a link, or over peer memory, during the sweeps.
type TrafficReport struct {
	Exchanges uint64 `json:"exchanges"`
	Bytes     uint64 `json:"bytes"` // of rows, both ways
	*LinkTime        // nil where no host took part, as with peer memory
}

// HasWay reports whether the way of the rows was timed. A nil report has no times.
func (t *TrafficReport) HasWay() bool { return t != nil && t.LinkTime != nil && t.WayTime != nil }

// LinkTime is how long the exchanges of a link took in seconds, all together, as one of its two ranks saw them.
type LinkTime struct {
	CopyOut  float64 `json:"copy_out_seconds"` // edges were copied out of the field
	Send     float64 `json:"send_seconds"`     // the rank handed its rows over
	Wait     float64 `json:"wait_seconds"`     // the rank waited for the neighbour's rows
	CopyIn   float64 `json:"copy_in_seconds"`  // the neighbour's rows were copied into the field
	*WayTime         // nil if the link does not know when rows arrive
}

// WayTime says where the rows of a link were meanwhile.
type WayTime struct {
	Frame   float64 `json:"frame_seconds"`   // from the hand-over until the connection had all of the rank's rows
	Unframe float64 `json:"unframe_seconds"` // from the arrival of the neighbour's last frame until its rows were there
	// Turn adds up the times from the end of Frame until the neighbour's last frame was there; it may be negative.
	Turn float64 `json:"turn_seconds"`
	// Wire is the way of rows from the end of Frame to the begin of Unframe, the mean of both directions. Late is how
	// much later than that of this rank the neighbour's Frame ended. Both follow from Turn at both ends, and are nil
	// without that.
	Wire *float64 `json:"wire_seconds,omitempty"`
	Late *float64 `json:"late_seconds,omitempty"`
	// Travel adds up the times from the swept edge until the neighbour's rows were in the halo, without the time in
	// which they lay ready and the rank swept on.
	Travel float64 `json:"travel_seconds"`
	// Hidden is the share of Travel in which the rank did not attend to any exchange but swept, 0 to 1; nil if that is
	// not known, as on a GPU.
	Hidden *float64 `json:"hidden,omitempty"`
}
