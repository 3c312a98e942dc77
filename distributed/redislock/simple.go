package redislock

// The state of a simple lock: under its name a string, the owner, with the lease as time to live.
// That is what SET with NX and PX makes, and what most libraries without Redisson's format use:
// they are excluded, but have to poll, since they know no channel.

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
