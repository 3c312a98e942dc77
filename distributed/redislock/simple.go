package redislock

// The state of a simple lock is a string under its name: the acquisition, with the lease as time
// to live. SET with NX and PX makes the same, and most libraries without Redisson's format use
// that. This lock excludes them. They have to poll, because they know no channel.

func newSimple(c *core) *single {
	return &single{
		c:       c,
		acquire: simpleAcquire,
		lookup:  simpleLookup,
		renew:   simpleRenew,
		release: simpleRelease,
		channel: "locks_simple_channel",
		payload: wakeOne,
		force:   simpleForce,
	}
}
