// Package redislock has locks on Redis, in the format of Redisson, so that processes in Go and in Java exclude and wake each
// other. A [Client] is a [locks.Provider]: it takes the place of the locks of one process.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	provider, err := redislock.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                     Redisson         under the lock's name
//	Client.Locker, Lock      RLock            a hash: owner, count
//	Client.FencedMutex      RFencedLock      the same, and a counter for fencing tokens
//	Client.FairMutex        RFairLock        the same, and a queue
//	Client.ReadWriteLocker   RReadWriteLock   a hash: mode, owners
//	Client.SimpleMutex      none             a string, as SET with NX and PX makes it
//
// The client is one of go-redis here. Package onrueidis, a module of its own, has the same locks over rueidis.
//
// All are [lease.Lock]: owned by a goroutine or an explicit owner, reentrant, renewed while held. Who waits in this process and what
// re-entry costs is told there.
//
// # Waiting
//
// A release is told on Redisson's channel. It wakes all of Redisson's processes that wait, as a release of Redisson's wakes all processes.
// Of ours that wait for a plain or a fenced lock, a release of ours wakes one, in the order in which they came: the message, which is a
// 0 for Redisson, says by its number of zeros which. It does not own the lock because of that. It asks for it like anybody else, and if it does
// not, since its process died or was paused, others ask 25 milliseconds later. Whoever comes at the right time may have the lock first.
//
// In addition to what Redisson has in Redis, there are for a lock for which processes of ours wait
//
//	locks_waiting:{name}     a list of them, for a minute after it was last of use. If it is lost, all are woken
//	locks_lingering:{name}   a channel without messages: who has waited is subscribed to it, and to the lock's channel, for two
//	                         or three seconds more, not to begin anew if it comes back
//
// For a name with braces, there are none around it. A user of Redis that is confined to some keys and channels needs these two.
//
// # Guarantees
//
// As long as one Redis server keeps what it was told, and does not set its clock forward, there is one holder at a time among
// those whose hold is not lost, and every holder is told of its loss before anybody else can get the lock:
// [locks.Hold.Lost], [locks.Hold.Err] and the context of [locks.Do] say so. Nothing of this package depends on the clock of
// a client.
//
// A program that was paused, or does not look, goes on to work after its loss. Against that a resource needs to check a
// fencing token: [Client.FencedMutex]. If the resource is on a Redis server itself, [Gate] does that.
//
// [NewRedlock] makes one lock of the locks on several servers, which survives the failure of a minority of them.
//
// # What happens when
//
//   - A process dies: its locks are free when their leases are over, 30 seconds at most by default.
//   - The server cannot be reached: holds are lost a margin before the end of their leases. An interruption that is shorter does
//     nothing. A first attempt to take a lock fails at once; who waits already goes on to wait, and asks again, ever more rarely but
//     each two seconds at least.
//   - A reply is lost: of an acquisition, the server is asked who has the lock; of a release, it is sent again. Neither counts
//     twice. Client options such as MaxRetries have no say in that.
//   - A context ends: the call returns at once, and what was under way is undone when it is known, or a twentieth of a second later.
//   - A request is carried out late, or a release does not get through: the lock is released as soon as that can be, for the time
//     of a lease.
//   - A process dies that waits: nothing, but that a plain or fenced lock is free for 25 milliseconds when it would have been its turn.
//   - A message, or the connection for messages, is lost: who waits has subscribed again and asked again within moments,
//     and asks in turn, by default each five seconds, whatever happens.
//   - Somebody deletes the lock, or all keys: the holder finds out at its next renewal, a third of the lease later at most, and never
//     touches the lock of a successor. [Mutex.ForceUnlock] does it properly: holders of the same Client are told at once.
//   - Something else is under the name: [locks.ErrForeign]. A key without time to live is somebody's until it is deleted.
//   - Scripts are flushed: nothing.
//   - The master fails, and a replica takes its place that had not heard of the lock: two may hold it until the first has
//     asked for its renewal. Tokens may repeat then. That is in the nature of asynchronous replication.
//   - The server evicts keys, or its clock is set forward: as if somebody had deleted the lock. If its clock is set back, the locks of
//     processes that die last as much longer.
//
// # When not to use it
//
// If two holders at a time are not merely inefficient but wrong, and the resource can check no token, take a store that agrees before it
// answers. If everything is in one process, take packages reentrant or named. If what is to be guarded is in a
// database, its own locks and transactions are one thing less that can fail.
//
// # Limits
//
// A [redis.Ring] is refused. On a cluster a name with braces must have a hash tag. Names have 4096 bytes at most. In Redisson's
// locks that count holds, a holder here has one, however often it re-enters. The owner is the name of one acquisition, in
// Redisson's form: a hold of a Java thread is never one's own here, and a request that the network delivers late frees
// nothing. The writer of a read-write lock that reads too has two such names.
package redislock
