//go:build !linux

package clock

import "time"

// systemSuspended returns 0: this system has no clock that shows suspensions.
func systemSuspended() time.Duration { return 0 }
