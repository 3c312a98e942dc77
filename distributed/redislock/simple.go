package redislock

// The state of a simple lock is a string under its name: the acquisition, with the lease as time
// to live. SET with NX and PX makes the same, and most libraries without Redisson's format use
// that. This lock excludes them. They have to poll, because they know no channel. Waiters of this
// module wait for it as for a plain lock: a release wakes one of them.

func newSimple(c *core) *single {
	return &single{
		c:       c,
		acquire: simpleAcquire,
		enqueue: simpleAcquire,
		lookup:  simpleLookup,
		renew:   simpleRenew,
		release: simpleRelease,
		leave:   waitLeave,
		inspect: simpleInspect,
		force:   simpleForce,
		channel: "locks_simple_channel",
		list:    "locks_waiting_simple",
		payload: wakeOne,
	}
}
