// Package redlock has locks on more than one Redis server: locks on a majority of independent
// servers, known as Redlock, and acquisitions that replicas acknowledge. [New] makes a [Client] of
// several servers. [WithReplicas] is an option of [redislock.New].
//
//	client, err := redlock.New([]redis.UniversalClient{a, b, c})
//	...
//	err = locks.Do(ctx, client.Locker("orders"), func(ctx context.Context) error { ... })
//
//	client, err := redislock.New(master, redlock.WithReplicas(1, time.Second))
//
// # Protocol
//
// An acquisition asks all servers at once. It waits until a majority has granted the lock, or no
// majority is possible any more. It waits for each server at most for the node timeout
// ([WithNodeTimeout]). Without a majority, it frees the lock on all servers, also on servers that
// did not answer. Then it asks again, when a server publishes a release or after the poll interval.
// If no rival has a majority either, it asks after a random time that doubles. An acquisition that
// took half of the lease is undone too.
//
// A renewal counts if a majority has confirmed it. A hold that a majority denies is lost at once.
// If no majority can be reached, the hold is lost at the end of its lease. A renewal creates
// nothing, except with [WithRestore]. A renewal that a server has not answered may come late, and
// end the lock there sooner than a longer [locks.Hold.Extend] since. So such a server confirms no
// longer extension until it has answered, or for five minutes.
//
// The servers keep a lock longer than the lease, by a hundredth of the lease and 2 ms. So their
// clocks may run faster than the holder's. A hold is valid for the lease, less the time that the
// acquisition took, less [lease.WithMargin].
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. On a majority of servers:
//
//   - [lease.Mutex.TryLockContext] may return false although the lock is free, while others try to
//     acquire it.
//   - An acquisition returns [locks.ErrForeign] if the key with the name is not a lock on so many
//     servers that no majority is left. With a name that no lock can have, the error says why.
//   - [lease.Mutex.Inspect] asks all servers, and a majority must answer. The holder is the client
//     that has the lock on a majority. Waiters of other clients are not known.
//   - [lease.Mutex.ForceUnlock] returns [errors.ErrUnsupported].
//
// # What it does not do
//
// Holds come without fencing tokens: counters on several servers lack a common order. If two
// holders at a time are worse than inefficient, use a fenced lock of a store that agrees before it
// answers.
//
// A server that restarts without its data can give a rival the majority while the lock is held. To
// keep its data, a server must write each change to disk before it answers (appendonly yes,
// appendfsync always). Otherwise keep it down for longer than the longest lease. The first holder
// learns at its next renewal if the majority denies its lock.
//
// A server whose clock is set forward frees its locks too early. If the clocks of several servers
// are set forward at once, the lock has two holders. Let clocks be slewed, not set. The clocks of
// clients do not matter.
//
// # Format
//
// On each server the lock is a [redislock.Client.Mutex], Redisson's RLock, with the same channel.
// So it excludes the members of Redisson's RedissonRedLock and RedissonMultiLock of that name,
// which acquire their members one after the other. An acquisition without a majority frees the lock
// without a message. A waiter of the plain lock on one of the servers may therefore wait for a
// whole lease.
package redlock
