// Package consullock has locks in the key-value store of Consul. Each lock is a key that belongs to
// the session of its holder, as in Consul's own lock. The locks of both exclude each other.
//
//	consul, err := api.NewClient(api.DefaultConfig())
//	client, err := consullock.New(consul)
//	...
//	defer client.Close(ctx)
//	err = locks.Do(ctx, client.Mutex("orders"), func(ctx context.Context) error {
//		hold, _ := locks.HoldFrom(ctx)
//		return save(ctx, order, hold.Token()) // ctx ends if the lock is lost
//	})
//
// [Client] is a [locks.Provider]. See package lease for the local queue, re-entry, renewal and
// losses.
//
// # Guarantees
//
// At most one holder has a hold that is not lost, whichever minority of the servers fails. Every
// holder is told of its loss before others can get the lock: by [locks.Hold.Lost], [locks.Hold.Err]
// and the context of [locks.Do]. See "What breaks it" below for the limits of these guarantees.
//
//   - The holder does not wait for Consul to tell it of a loss. Its hold ends by its own clock, one
//     TTL after the last answered renewal was sent, less a margin. Consul frees the lock after
//     twice the TTL and the lock delay.
//   - A session can end before its time. Then a blocking query tells the holder at once. Consul
//     keeps the lock for the lock delay, which is a TTL. By the end of the delay, the hold of a
//     holder that hears nothing is over too. See [WithLockDelay].
//   - The fencing token is the index of Consul's log at which the key was acquired. It grows from
//     holder to holder, also if the key was deleted in between, and if Consul's own lock held the
//     key.
//   - A request that comes late changes nothing: each request names the index that it expects, and
//     an index never comes again.
//   - A renewal counts after a leader has asked the other servers whether it still leads, and has
//     found the key unchanged. A leader that was stopped or cut off prolongs nothing.
//
// # What it costs
//
// A pair of an acquisition and a release is a read and two writes. The very first pair takes two
// more writes: for the key and the session. A renewal of all holds of a client is two reads, and a
// third for each 64 more holds. Each request is one round trip to the agent.
//
// A waiter keeps a connection on which it waits for the next change of the key, and also reads each
// 5 seconds. Each release wakes all waiting processes, and one of them gets the lock. Processes are
// not served in order. A client with a session keeps one more connection. Waiters and the session
// repeat their request once a TTL.
//
// An agent permits 200 connections of one address by default (limits.http_max_conns_per_client).
// The agent refuses further connections, also for renewals. So too many waiters cost holders their
// locks.
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. Each hold has a fencing token. Between
// processes a lock has no order: a free lock goes to the process that asks first.
//
//   - [lease.Mutex.TryLockContext] returns false also while a lock delay is left, and if other
//     clients were faster ten times.
//   - [lease.Mutex.ForceUnlock] leaves no lock delay. A holder of another process learns of it with
//     its next renewal.
//   - [lease.Mutex.Inspect] takes one read. It reports the waiters of this client only. The time
//     left is known only for holds of this client. The label of Consul's own lock is the id of its
//     session.
//   - A hold with [lease.WithFixedTTL] is not longer than [WithTTL]. If the process dies, the lock
//     is free when the session has ended.
//
// # What breaks it
//
//   - A lock delay that is shorter than the TTL, and a session that ends before its time. Then
//     others can have the lock before the holder knows, and the resource must compare tokens. The
//     same is true of a TTL above a minute, the longest delay of Consul.
//   - A key that is deleted: its holder loses the lock with the next renewal. Other processes may
//     acquire the lock before that.
//   - A key that is overwritten: its holder loses the lock with the next renewal. The key stays
//     with the session. So others get the lock only by [lease.Mutex.ForceUnlock], or after the end
//     of the session.
//   - Servers that lose their data, or are restored from a backup: sessions and locks are as they
//     were at the time of the backup. With another cluster, tokens begin anew.
//   - A minority of the servers alone: nobody can acquire, renew or release.
//
// # What ends a session before its time
//
// The session belongs to the agent that the client talks to.
//
//   - An operator destroys it.
//   - The agent leaves the cluster. A client agent does so by default when it is stopped in good
//     order (leave_on_terminate).
//   - The agent is a server that is dead, paused or cut off. The other servers remove it by
//     default, some seconds later (autopilot, cleanup_dead_servers). A client agent stays for days.
//   - A leader was stopped for longer than twice the TTL, and leads again within six minutes. That
//     leader ends the sessions whose time it had counted, also if another leader has renewed them.
//
// # What happens when
//
//   - A process dies: the next process gets the lock after twice the TTL and the lock delay, 45
//     seconds by default (see [DefaultTTL]). Consul does not report the end of the delay, so a
//     waiter notices it at its next poll, up to 5 seconds later. See [lease.WithPoll].
//   - The leader dies: requests fail until there is another leader, which takes some seconds. The
//     new leader begins the time of all sessions anew. Holds and waiters go on, unless their agent
//     was the old leader.
//   - The agent dies: requests fail. Holds end in time. Only a new client can use another agent,
//     unless the address leads to that agent.
//   - A reply is lost: the client reads the key.
//   - A key lacks the flags of a lock, such as a configuration value or Consul's semaphore:
//     [locks.ErrForeign]. The key stays unchanged.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers.
//
//	the request   403 "Permission denied", 400, 413, a TTL that the servers do not permit
//	the login     403 "ACL not found", 401: a waiter waits on, and a release is repeated until the
//	              hold's end
//	the moment    429, an agent that has not joined yet
//	in doubt      500 "No cluster leader", other 5xx: as the moment, and the client finds out what
//	              became of a write
//
// # Names
//
// The key is the prefix and the name. Letters, digits and - _ . ~ / stay. Other bytes are written
// as =XX, and so are slashes and dots that a path would not keep. A key has 1024 bytes at most. The
// key of a free lock stays. It may be deleted at any time.
//
// Consul's command line locks the key PREFIX/.lock: "consul lock locks/orders" is the lock called
// orders/.lock with the default prefix.
//
// The package offers neither read-write locks nor semaphores.
package consullock
