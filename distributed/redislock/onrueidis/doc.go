// Package onrueidis has the locks of package redislock over rueidis instead of go-redis. They are
// the same locks, in the same format: processes with either exclude and wake each other.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	provider, err := onrueidis.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
// All that package redislock says of its locks, and its options, holds here. What differs is the
// client below.
//
//   - A request has a connection of the client's pool to itself, of which ten per processor at
//     most are in use at a time, and is no part of a pipeline: so no lock waits behind other
//     requests of the program, and rueidis repeats none of them, whatever its options are. Set
//     BlockingPoolSize to no less than that, and BlockingPoolCleanup if idle connections shall be
//     closed. Each has two buffers, of half a mebibyte if ReadBufferEachConn and
//     WriteBufferEachConn do not say otherwise.
//   - Who waits for locks has one connection of that pool more, for subscriptions; on a cluster
//     with sharded channels, one to each server.
//   - A reply is waited for until the deadline of the request's context, or for two to four
//     seconds if it has none. That a context is cancelled ends no request that is under way:
//     LockContext returns at once all the same, and what comes of the request is undone; a
//     [redislock.Gate] returns when the request does.
//   - ConnWriteTimeout and Dialer.KeepAlive say how soon a connection for subscriptions that is
//     dead is noticed. Until then, who waits asks in turn.
//   - SendToReplicas must not say so of EVAL and EVALSHA, nor ReplicaOnly be set.
//   - What stands in for Redis in tests may know neither RESP3 nor CLIENT TRACKING, without which
//     rueidis refuses to connect: for miniredis, set DisableCache. It is of no use to locks
//     anyway.
//
// The module depends on go-redis, too, as package redislock does. Nothing of it runs.
package onrueidis
