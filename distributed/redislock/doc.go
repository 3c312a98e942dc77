// Package redislock has locks on Redis, in the format of Redisson, so that processes in Go and in
// Java exclude and wake each other. A [Client] is a [locks.Provider]: it takes the place of the
// locks of one process.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	provider, err := redislock.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                     Redisson         under the lock's name
//	Client.Locker, Mutex     RLock            a hash: owner, count
//	Client.FencedMutex       RFencedLock      the same, and a counter for fencing tokens
//	Client.FairMutex         RFairLock        the same, and a queue
//	Client.RWMutex           RReadWriteLock   a hash: mode, owners
//	Client.SimpleMutex       none             a string, as SET with NX and PX makes it
//
// The client is one of go-redis here. Package onrueidis, a module of its own, has the same locks
// over rueidis. Fair locks need Redis 6.0.6, for LPOS.
//
// All are [lease.Mutex]: owned by a goroutine or an explicit owner, reentrant, renewed while
// held. See package lease for queueing inside a process and for the cost of re-entry.
//
// # Waiting
//
// A release is published on Redisson's channel. It wakes all of Redisson's processes that wait.
// Of our processes that wait for a plain or a fenced lock, a release of ours wakes the first, by
// a message on a channel of its own. The woken process does not own the lock because of that: it
// asks for it, and another process may be faster.
//
// In addition to what Redisson has in Redis, there are for a lock for which processes of ours
// wait
//
//	locks_waiting:{name}            a list of the waiters, for a minute after it was last of use. It may be lost
//	locks_waiting:{name}:<client>   a channel, to which that client subscribes while it waits and two or three seconds more
//
// For a name with braces, there are none around it. A name that Redisson's spin lock uses wakes
// waiters only by polling, since a spin lock publishes nothing: see [lease.WithPoll].
//
// # Permissions
//
// A user that is confined to locks whose names begin with orders needs these rules. The last two
// lines are for [WithReplicas] and for sharded channels.
//
//	~orders* ~{orders* ~redisson_* ~locks_* &redisson_* &locks_* -@all
//	+eval +evalsha +ping +hello +subscribe +unsubscribe +publish +pubsub|numsub
//	+hdel +hexists +hget +hkeys +hmget +hscan +hgetall +hset +hsetnx +pttl +pexpire +persist +exists
//	+del +get +set +incr +time +lindex +llen +lpop +lpos +lpush +lrange +lrem +rpush
//	+zadd +zincrby +zrange +zrem +zscore
//	+wait
//	+ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub
//
// A request that lacks a permission is not repeated.
//
// # Guarantees
//
// One Redis server that keeps what it was told, and does not set its clock forward, has one
// holder at a time among those whose hold is not lost. Every holder is told of its loss before
// another one can get the lock: [locks.Hold.Lost], [locks.Hold.Err] and the context of [locks.Do]
// say so. Nothing of this package depends on the clock of a client.
//
// A program that was paused, or does not look, goes on to work after its loss. Against that a
// resource needs to check a fencing token: [Client.FencedMutex]. If the resource is on a Redis
// server itself, [Gate] does that.
//
// Tokens increase from holder to holder, also when their counter is lost by a flush, an eviction,
// or a restart without persistence: an absent counter begins with the server's time in
// milliseconds. What is left: more than a thousand acquisitions a second since the counter began,
// a clock that was set back, a failover to a replica that lacks the last tokens, and a counter
// that Redisson began anew with 1.
//
// [NewRedlock] makes one lock of the locks on several servers, which survives the failure of a
// minority of them.
//
// # What happens when
//
//   - A process dies: its locks are free when their leases are over, 30 seconds at most by
//     default.
//   - The server cannot be reached: holds are lost a margin before the end of their leases. A
//     shorter interruption has no effect. A first attempt to acquire a lock fails at once. A
//     waiter goes on to wait, and asks again, ever more rarely, but each two seconds at least.
//   - The server answers LOADING, READONLY, CLUSTERDOWN, TRYAGAIN and the like: LockContext asks
//     again until its context ends, from the first attempt on. TryLockContext returns the error.
//     See [lease.WithRetry].
//   - A reply is lost: of an acquisition, the server is asked which owner has the lock; of a
//     release, it is sent again. Neither counts twice. Client options such as MaxRetries have no
//     effect on that.
//   - A context ends: the call returns at once. What was under way is undone when its answer
//     comes, or a twentieth of a second later. The answer ends the undoing.
//   - An unlock does not get through: it returns an error after the release timeout, whatever the
//     client's ReadTimeout is. The lock is released as soon as the server can be reached, for the
//     time of a lease.
//   - A waiting process dies: no effect. If the server does not notice, such as after a failure
//     of the network, or is one of a cluster: a pause of up to 150 ms for plain and fenced locks
//     when the process's turn comes.
//   - Processes die that wait for a fair lock: the next waiter has the lock within a second,
//     however many died. Where the server does not notice, the place of a process lasts for the
//     fair wait, see [WithFairWait]. Places end in Redis by themselves.
//   - A message, or the connection for messages, is lost: the waiter subscribes again and asks
//     again within moments. It also asks each five seconds by default, whatever happens.
//   - The lock or all keys are deleted: the holder finds out at its next renewal, a third of the
//     lease later at most, and never touches the lock of a successor. [Mutex.ForceUnlock] does it
//     properly: holders of the same Client are told at once.
//   - Something else is under the name: [locks.ErrForeign]. That includes a hash that no lock
//     leaves: without a field whose value is a count and whose name has a colon. A key without
//     time to live is somebody's until it is deleted.
//   - SCRIPT FLUSH: no effect.
//   - The master fails, and a replica takes its place that had not heard of the lock: two may
//     hold it until the first has asked for its renewal. Tokens may repeat then. That is in the
//     nature of asynchronous replication.
//   - The server evicts keys, or its clock is set forward: as if the lock had been deleted. If
//     its clock is set back, the locks of processes that die last as much longer.
//
// # When not to use it
//
// Take a store that agrees before it answers if two holders at a time are wrong, not merely
// inefficient, and the resource can check no token. Take packages reentrant or named if
// everything is in one process. If a lock guards what is in a database, that database's own locks
// and transactions are one thing less that can fail.
//
// # Limits
//
// A [redis.Ring] is refused. On a cluster a name with braces must have a hash tag. Names have
// 4096 bytes at most. In Redisson's locks that count holds, a holder here has one, however often
// it re-enters. The owner is the name of one acquisition, in Redisson's form: a hold of a Java
// thread is never one's own here, and a request that the network delivers late frees nothing. The
// writer of a read-write lock that reads too has two such names.
package redislock
