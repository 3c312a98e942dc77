// Package comingfrom has tests only. They are the programs of the pages docs/guides/coming-from for
// redsync, bsm/redislock, rueidislock and gofrs/flock, and they prove which of these exclude our
// locks. The folder shedlock has the Java program of ShedLock's page.
package comingfrom
