//go:build !linux

package clock

import "time"

// systemSuspended returns 0: no clock of this system shows suspensions.
func systemSuspended() time.Duration { return 0 }
