package driver

import (
	"time"

	"github.com/jucgo/locks/distributed/lease/internal/clock"
)

// Now returns the present by the clock that measures holds. Its differences count the time during
// which the machine was suspended, as CLOCK_BOOTTIME does on Linux. [time.Now] does not count it.
//
// Compare such a time only with other times from Now. On systems other than Linux it is time.Now.
func Now() time.Time { return clock.Now() }
