// Package comingfrom has tests only. They are the programs of the pages docs/guides/coming-from for
// redsync, bsm/redislock, rueidislock and gofrs/flock, and they prove which of these exclude our
// locks.
package comingfrom
