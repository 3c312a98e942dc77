package zklock

const (
	OfSession = ofSession
	Foreign   = foreign
)

var (
	Refusals = refusals
	ClassOf  = classOf
)
