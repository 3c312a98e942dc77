package redislock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a semaphore is a sorted set, see lua/lib_permits.lua. Its waiters wait like waiters
// of a plain lock, see waiting.go. But a release wakes all waiters whose permits are free. In the
// list, the permits of a waiter and the size of its semaphore follow its name.

func newPermits(c *core) *single {
	return &single{
		c:             c,
		acquire:       permitsAcquire,
		enqueue:       permitsAcquire,
		lookup:        permitsLookup,
		renew:         permitsRenew,
		release:       permitsRelease,
		leave:         permitsLeave,
		inspect:       permitsInspect,
		force:         permitsForce,
		prefix:        "locks_permits",
		channel:       "locks_permits_channel",
		list:          "locks_waiting_permits",
		forcedMessage: wakeAll,
		weighs:        true,
	}
}

// weigh moves the numbers of permits from the names of claims to their field Permits.
func weigh(claims []driver.Claim) {
	for i := range claims {
		c := &claims[i]
		rest, _, _ := cutLast(c.Acquisition)
		name, permits, ok := cutLast(rest)
		n, err := strconv.ParseInt(permits, 10, 64)
		if ok && err == nil {
			c.Acquisition, c.Permits = name, n
		}
	}
}

// cutLast cuts s at its last colon.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// maxSize is how many permits a semaphore may have. A script's numbers are exact up to maxSize + 1,
// so that no sum above the size is rounded down to the size.
const maxSize = 1<<53 - 1

// Semaphore returns the semaphore called name, of size permits, at most 2^53-1. Its format is this
// module's, and unknown to Redisson. See [lease.Semaphore].
//
// Permits have a lease by the server's clock, and are renewed. If a process dies, its permits
// return within [WithTTL]. The holder is told of a loss before the permits go to others. The
// permits come without tokens.
//
// A release wakes the waiters whose permits are free, in order of arrival, in all processes. Others
// pass a waiter for many permits while fewer are free. The woken waiters request their permits, and
// others may be faster: the order is not guaranteed. Each acquisition and each release is one
// request. The time of a request on the server grows with the logarithm of the number of holders. A
// release also looks at the first hundred waiters.
//
//	locks_permits:{name}           a sorted set: holders, their permits, ends of leases
//	locks_waiting_permits:{name}   a list of the waiters, which may be lost
//	locks_permits_channel:{name}   a channel for releases
//
// A lock and a semaphore of Redisson with the same name are independent. But the names q and {q}
// belong to one semaphore.
func (c *Client) Semaphore(name string, size int64) *lease.Semaphore {
	lc, opts := c.lockOptions(counting, name, nil)
	if size > maxSize {
		opts = append(opts, driver.WithRefusal(fmt.Errorf("size of %d, at most 2^53-1 is allowed", size)))
	}
	return lc.Semaphore(name, size, opts...)
}
