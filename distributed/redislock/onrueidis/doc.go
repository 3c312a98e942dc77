// Package onrueidis has the locks of package redislock over rueidis instead of go-redis. They are
// the same locks, in the same format: processes with either exclude and wake each other.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	provider, err := onrueidis.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
// The documentation of package redislock, and its options, apply here. These points of the client
// differ:
//
//   - Requests have connections of the client's pool to themselves, outside of its pipeline. So no
//     lock waits behind other requests of the program. rueidis does not repeat such requests,
//     whatever DisableRetry is.
//   - On one server, two connections per processor are for requests of locks. While all are busy,
//     further requests wait, at most 64 for one connection. They are sent together when it is free,
//     which takes a round trip, or for themselves after 200 ms.
//   - At most ten connections per processor are in use at a time. Set BlockingPoolSize to at least
//     that, and BlockingPoolCleanup to close idle connections. Each connection has two buffers of
//     half a mebibyte, unless ReadBufferEachConn and WriteBufferEachConn are set.
//   - Holders and waiters have one more connection of that pool, for subscriptions. On a cluster
//     with sharded channels, they have one to each server.
//   - A request waits for its reply until the deadline of its context, or for two to four seconds
//     without a deadline. The cancellation of a context does not end a request. LockContext
//     returns at once all the same, and undoes the request. A [redislock.Gate] returns when the
//     request does.
//   - ConnWriteTimeout and Dialer.KeepAlive decide how soon a dead connection for subscriptions is
//     noticed. Until then, waiters ask after the poll interval.
//   - Set Sentinel.Dialer.KeepAlive too: rueidis lacks a default for it. Without KeepAlive, a
//     client whose sentinel falls silent does not find a new master, and its Close may not return.
//   - SendToReplicas must be false for EVAL and EVALSHA. ReplicaOnly and Standalone.EnableRedirect
//     must not be set: a redirection repeats all requests that were sent together.
//   - A test double such as miniredis may lack RESP3 and CLIENT TRACKING. rueidis connects to it
//     only with DisableCache, which locks do not need.
//
// The module depends on go-redis too, as package redislock does. None of its code runs.
package onrueidis
