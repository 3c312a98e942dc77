package zklock

// Class tells whether an error refuses the request, the connection, or the moment.
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
