// Package redislock has locks on Redis in the format of Redisson, so that processes in Go and in
// Java exclude and wake each other. A [Client] is a [locks.Provider], as are the local packages.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	provider, err := redislock.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                     Redisson         under the lock's name
//	Client.Locker, Mutex     RLock            a hash: holder, count
//	Client.FencedMutex       RFencedLock      the same, and a counter for fencing tokens
//	Client.FairMutex         RFairLock        the same, and a queue
//	Client.RWMutex           RReadWriteLock   a hash: mode, holders
//	Client.SimpleMutex       none             a string, as SET with NX and PX makes it
//	Client.Semaphore         none             nothing: see there
//	Client.RedissonExpirableSemaphore   RPermitExpirableSemaphore   a number, and a sorted set
//	Client.RedissonSemaphore            RSemaphore                  a number
//
// The client is one of go-redis. Package onrueidis, a module of its own, has the same locks over
// rueidis. Fair locks need LPOS, which Redis has since 6.0.6.
//
// Each lock is a [lease.Mutex]: owned by a goroutine or an explicit owner, reentrant, and renewed
// while held. See package lease for the local queue and for the cost of re-entry.
//
// # Waiting
//
// A release is published. It wakes each waiting process of Redisson. Of our waiting processes, a
// release of ours wakes only the first. A release of a read-write lock wakes the waiters in front
// that can enter together: one writer, or the readers up to the next writer. The woken process does
// not hold the lock. It requests the lock, and another process may be faster.
//
// Waiters of our processes need these keys in Redis in addition to Redisson's:
//
//	locks_waiting:{name}            a list of the waiters, which may be lost at any time; it expires
//	                                a minute after its last use
//	locks_waiting:{name}:<client>   a channel; the client subscribes while it waits, and for two or
//	                                three seconds more
//	locks_waiting_rw, _simple       the same for read-write and simple locks
//	locks_waiting_permits           the same for semaphores
//	locks_client:<client>           label, host and process id of the client's process, for
//	                                Inspect; written once a minute at most. Also a channel;
//	                                the client subscribes with its first hold, for forced unlocks,
//	                                and to another channel while it waits for Redisson's permits
//
// If name has braces, no others are put around it. Waiters of a name that Redisson's spin lock uses
// must poll, because a spin lock publishes nothing: see [lease.WithPoll].
//
// # Permissions
//
// A user that may use only locks whose names begin with orders needs these rules. The last two
// lines are for redlock.WithReplicas and for sharded channels. A name that contains braces gets no
// outer braces, as in redisson_lock_token:orders{1}. Such names need each rule below that has a
// brace also in a form without the brace.
//
//	~orders* ~{orders* ~redisson_lock_token:{orders*
//	~redisson_lock_queue:{orders* ~redisson_lock_timeout:{orders*
//	~locks_waiting:{orders* ~locks_waiting_rw:{orders* ~locks_waiting_simple:{orders*
//	~locks_permits:{orders* ~locks_waiting_permits:{orders* ~locks_permits_channel:{orders*
//	~redisson_sc:{orders*
//	~locks_fence:{orders* ~locks_client:*
//	~redisson_lock__channel:{orders* ~redisson_rwlock:{orders* ~locks_simple_channel:{orders*
//	&redisson_lock__channel:{orders* &redisson_rwlock:{orders* &locks_simple_channel:{orders*
//	&locks_waiting:{orders* &locks_waiting_rw:{orders* &locks_waiting_simple:{orders*
//	&locks_permits_channel:{orders* &locks_waiting_permits:{orders* &redisson_sc:{orders*
//	&locks_client:*
//	-@all
//	+eval +evalsha +ping +hello +subscribe +unsubscribe +publish +pubsub|numsub
//	+hdel +hexists +hget +hgetall +hkeys +hlen +hmget +hscan +hset
//	+pttl +pexpire +pexpireat +persist +exists
//	+del +get +getset +set +incr +incrby +decrby +time +lindex +llen +lpop +lpos +lpush +lrange +lrem +rpush
//	+zadd +zcard +zcount +zincrby +zrange +zrangebyscore +zrem +zscore
//	+wait
//	+ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub
//
// Scripts name their channels as keys, so channels need both rules. Users share only
// locks_client:*, which has the descriptions of clients' processes, and messages that make a client
// check whether it has a lock. A request that lacks a permission is not repeated.
//
// # Guarantees
//
// At most one holder at a time has a hold that is not lost. The conditions are a single master,
// which keeps its data, and whose clock is not set forward. Every holder is told of its loss before
// another process can acquire the lock, by [locks.Hold.Lost], [locks.Hold.Err] and the context of
// [locks.Do]. No client's clock matters.
//
// A program that was paused, or does not check its hold, works on after its loss. To refuse such
// work, a resource must check fencing tokens: see [Client.FencedMutex]. If the resource is on a
// Redis server, [Gate] checks tokens.
//
// Tokens increase from holder to holder. They are not consecutive: a token is the next number of
// the counter, or the server's time in microseconds if that is larger. So tokens also increase if
// the counter is lost by a flush, an eviction, or a restart without persistence. They increase too
// if a failover promotes a replica that lacks the last tokens. In three cases tokens repeat, or a
// later token is smaller:
//
//   - The clock of the server was set back, or the clock of the new master is behind.
//   - The next holder is Redisson's. Its token is the next number of the counter, whatever the time
//     is.
//   - Two masters give tokens at the same time, in a failover of Redis Sentinel.
//
// Package redlock combines the locks on several servers into one lock, which survives the failure
// of a minority of the servers. Package redlock also has an option by which replicas acknowledge
// acquisitions.
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. On Redis:
//
//   - [lease.Mutex.LockContext] returns [locks.ErrForeign] if the key with the name is not a lock.
//     An acquisition by a name that no lock can have returns an error that says why.
//   - [lease.Mutex.ForceUnlock] frees a lock held in Go or in Java, and wakes waiters as a release
//     does. A holder of another Client of ours is told at once too, unless the message is lost. A
//     waiter of any lock but a fair lock may notice late, by 100 ms for each place up to its own.
//     The read half frees the holds of all readers, and nothing while there is a writer. The write
//     half frees the writer's hold, and the writer's own read hold. The token of a fenced lock
//     continues to increase. A key that is not a lock of this kind stays, and the error matches
//     [locks.ErrForeign]. A plain, fair or fenced lock is a hash with one field, which is a count.
//     A simple lock is a string with a time to live.
//   - [lease.Mutex.Inspect] takes one request, and one more for the identities of holders and
//     waiters. In a cluster the identities take one request for each slot. Holders of Redisson are
//     part of the answer, with their name in Redis as their label. Only a [Client.FencedMutex] has
//     a token. The answer has the waiters of this module, of which a few may have gone. Waiters of
//     Redisson are unknown, except for a fair lock, where the answer has all waiters in order.
//     Either half of a read-write lock describes both.
//
// # What happens when
//
//   - A process dies: its locks are free when their leases are over, 30 seconds at most by
//     default.
//   - The server cannot be reached: holds are lost a margin before the end of their leases. A
//     shorter interruption does no harm. A first attempt to acquire a lock fails at once. Waiters
//     keep waiting, and ask again with growing pauses, of two seconds at most.
//   - The server answers LOADING, READONLY, NOREPLICAS, MISCONF, OOM, CLUSTERDOWN and the like:
//     LockContext asks again until its context ends, from the first attempt on. TryLockContext
//     returns the error. See [lease.WithRetry]. An unlock asks again too, until the release
//     timeout, and then in the background.
//   - The server refuses the login, such as by WRONGPASS: a first attempt returns the error.
//     Waiters keep waiting, and holds are renewed when the login is accepted again. An unlock
//     returns the error, and goes on in the background.
//   - The reply to an acquisition is lost: the client asks the server which acquisition holds.
//   - The reply to a release is lost: the client repeats the release. Neither request counts twice.
//     Client options such as MaxRetries do not change these repetitions.
//   - A context ends: the call returns at once. The client undoes the request under way when its
//     answer comes, or after a twentieth of a second without an answer. The answer ends the
//     undoing.
//   - An unlock does not reach the server: it returns an error after the release timeout, whatever
//     the client's ReadTimeout is. The client goes on to release the lock for the time of a lease.
//     Hooks of the client run in the goroutine of the unlock, and must return in time.
//   - A process dies while it waits for a lock that is not fair: no effect, if the server has
//     noticed the death. After a failure of the network, or in a cluster, the waiters behind the
//     dead process ask by themselves. Each waiter asks after 100 ms for each place up to its own,
//     and up to 50 ms more.
//   - Processes die while they wait for a fair lock: the next waiter has the lock within a second,
//     however many died. If the server does not notice, the place of a process lasts for the fair
//     wait, see [WithFairWait]. Places expire in Redis by themselves.
//   - A message, or the connection for messages, is lost: the waiter subscribes again and asks
//     again within moments. In any case the waiter asks every five seconds by default.
//   - A failover leaves the connection for messages at the former master. A client with waiters
//     asks the server once a second whether it has their subscriptions. If not, the client connects
//     anew. In a cluster the client asks about sharded channels only.
//   - The lock or all keys are deleted: the holder learns of its loss at its next renewal, a third
//     of the lease later at most. It never touches the lock of a successor. Use
//     [lease.Mutex.ForceUnlock] instead, which tells holders at once.
//   - The key with the name is not a lock: [locks.ErrForeign]. This includes a hash without a field
//     whose value is a count and whose name has a colon. A key without time to live counts as held
//     until it is deleted.
//   - SCRIPT FLUSH: no effect.
//   - The master fails, and a replica that had not heard of the lock takes its place. Two processes
//     may hold the lock until the first holder requests its renewal. Asynchronous replication
//     cannot avoid such double holds. See redlock.WithReplicas, and above for tokens.
//   - Redis Sentinel fails over, also in a planned failover without a dead server: for up to 11 s
//     two masters accept writes. Two processes may hold the lock for as long. Neither notices if
//     both release before their next renewals. The second holder may have the smaller token. With
//     redlock.WithReplicas no such pair was seen in 27 failovers, and none in 10 with the setting
//     min-replicas-to-write of the servers, see README.md.
//   - The server evicts keys, or its clock is set forward: the effect is the same as of a deleted
//     lock. If the clock is set back, the locks of dead processes last longer by the same time.
//
// # When not to use it
//
// Use a store that agrees before it answers if two holders at a time are wrong, not merely
// inefficient, and the resource cannot check tokens. Use package reentrant or named if everything
// is in one process. If a lock guards data in a database, use that database's own locks and
// transactions, which avoid a second system that can fail.
//
// # Limits
//
// A [redis.Ring] is refused. On a cluster a name with braces must have a hash tag. Names have
// 4096 bytes at most.
//
// By Redisson's rule for names, q and {q} are two locks with one queue of waiters, one channel, and
// one counter of tokens. Two fair locks with these names delay each other: use one name only. Two
// semaphores of [Client.Semaphore] with these names are one semaphore, with one set of permits. Two
// of [Client.RedissonExpirableSemaphore] have a number of permits each, but share one set of held
// permits, as in Redisson, and so count wrong. Never use both names for semaphores.
//
// Redisson's locks count holds. A holder of ours has the count one, however often it re-enters. The
// holder in Redis is the name of one acquisition, in Redisson's form. So a hold of a Java thread
// never counts as a hold of a caller here, and a late request frees nothing. The writer of a
// read-write lock that also reads has two such names.
package redislock
