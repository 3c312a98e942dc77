// Package redislock has distributed locks on Redis.
package redislock
