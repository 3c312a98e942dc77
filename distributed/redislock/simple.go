package redislock

// The state of a simple lock is a string under its name: the acquisition, with the lease as time to
// live. Most libraries without Redisson's format make the same string, by SET with NX and PX. A
// simple lock excludes the locks of these libraries. The libraries must poll, because they know no
// channel. Waiters of this module wait as for a plain lock: a release wakes one of them.

func newSimple(c *core) *single {
	return &single{
		c:             c,
		acquire:       simpleAcquire,
		enqueue:       simpleAcquire,
		lookup:        simpleLookup,
		renew:         simpleRenew,
		release:       simpleRelease,
		leave:         waitLeave,
		inspect:       simpleInspect,
		force:         simpleForce,
		channel:       "locks_simple_channel",
		list:          "locks_waiting_simple",
		forcedMessage: wakeOne,
	}
}
