//go:build !linux

package filelock

// alarm does not exist: each acquisition looks.
type alarm struct{}

func (descriptor) setAlarm(place, fileID) (a *alarm, busy bool) { return nil, false }
func (*alarm) silent() (silent, rung bool)                      { return false, true }
func (*alarm) end()                                             {}
