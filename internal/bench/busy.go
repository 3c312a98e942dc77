package bench

// BusyLimit is the share of all processors that others may take before figures are not to be
// trusted.
const BusyLimit = 0.05

// Busy says how much processor time others took during a measurement.
type Busy struct {
	Known  bool    `json:"known"`  // whether this system tells
	Others float64 `json:"others"` // the share of all processors, from 0 to 1
	TooBig bool    `json:"tooBig"` // the figures are not to be trusted
}
