package zklock

// Class is what an error refuses.
type Class = class

const (
	Unknown   = unknown
	OfState   = state
	Request   = request
	Login     = login
	Moment    = moment
	OfSession = ofSession
	Foreign   = foreign
)

var (
	Refusals = refusals
	ClassOf  = classOf
)
