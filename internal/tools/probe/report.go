package probe

import "encoding/json"

// Report is what a part found on one node, as it travels from there to whoever prints it.
type Report struct {
	Part     string          `json:"part"`
	Host     string          `json:"host"`
	Node     int             `json:"node"`
	Seconds  float64         `json:"seconds"` // that the part took
	Data     json.RawMessage `json:"data,omitempty"`
	Text     string          `json:"text,omitempty"`
	Findings []string        `json:"findings,omitempty"`
	Figures  []Figure        `json:"figures,omitempty"`
	NotRun   string          `json:"not_run,omitempty"`
	Fault    string          `json:"fault,omitempty"`
}

// Event is what the ranks publish for the launcher: that a part begins, or what it found on one node.
type Event struct {
	Begins string  `json:"begins,omitempty"` // name of the part
	Report *Report `json:"report,omitempty"`
}
