// Package redisson has tests only: of [github.com/jucgo/locks/distributed/redislock] against the
// real Redisson, in Java processes that use the same server at the same time.
package redisson
