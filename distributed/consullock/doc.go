// Package consullock has locks in the key-value store of Consul. Each lock is a key that belongs to
// the session of its holder, as Consul's own lock does it. Both exclude each other.
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
// holder is told of its loss before others can get the lock: by [locks.Hold.Lost],
// [locks.Hold.Err] and the context of [locks.Do]. What takes these guarantees away is below,
// under "What breaks it".
//
//   - The holder does not wait for Consul to tell it of a loss. Its hold ends by its own clock, one
//     TTL after the last answered renewal was sent, less a margin. Consul frees the lock after
//     twice the TTL and the lock delay.
//   - A session can end before its time. Then a blocking query tells the holder at once. Consul
//     keeps the lock for the lock delay, which is a TTL, so that a holder that hears nothing has
//     lost it too. See [WithLockDelay].
//   - The fencing token is the index of Consul's log at which the key was acquired. It grows from
//     holder to holder, also if the key was deleted in between, and if Consul's own lock had it.
//   - A request that comes late changes nothing: each names the index that it expects, and an index
//     never comes again.
//   - A renewal counts after a leader that has asked the others has found the key unchanged. A
//     leader that was stopped or cut off prolongs nothing.
//
// # What it costs
//
// A pair of an acquisition and a release is a read and two writes. The first one of all has two
// writes more: the key and the session. A renewal of all holds of a client is two reads, and a
// third for each 64 more holds. Each request is one round trip to the agent.
//
// A waiter keeps a connection on which it waits for the next change of the key, and also reads each
// 5 seconds. Each release wakes all waiting processes, and one of them gets the lock. There is no
// order between processes. A client with a session keeps one more connection. Both repeat their
// request once a TTL.
//
// An agent permits 200 connections of one address by default (limits.http_max_conns_per_client). It
// refuses further ones, also that of a renewal. So more waiters than that cost holders their locks.
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
//   - [lease.Mutex.Inspect] takes one read. Waiters are those of this client. The time left is
//     known of holds of this client only. The label of Consul's own lock is the id of its session.
//   - A hold with [lease.WithFixedTTL] is not longer than [WithTTL]. If the process dies, the lock
//     is free when the session has ended.
//
// # What breaks it
//
//   - A lock delay that is shorter than the TTL, and a session that ends before its time. Then
//     others can have the lock before the holder knows, and the resource has to compare tokens.
//     That is so too with a TTL above a minute, which is the longest delay of Consul.
//   - A key that is deleted: its holder loses the lock with the next renewal. Others may have it
//     before that.
//   - A key that is overwritten: its holder loses the lock with the next renewal. The key stays
//     with the session. So others get it by [lease.Mutex.ForceUnlock] only, or after its end.
//   - Servers that lose their data, or are restored from a backup: sessions and locks are as they
//     were then. With another cluster, tokens begin anew.
//   - A minority of the servers alone: nobody can acquire, renew or release.
//
// # What ends a session before its time
//
// The session belongs to the agent that the client talks to.
//
//   - An operator destroys it.
//   - The agent leaves the cluster. A client agent does so by default when it is stopped in good
//     order (leave_on_terminate).
//   - The agent is a server that is dead, paused or cut off. The others remove it by default, some
//     seconds after that (autopilot, cleanup_dead_servers). A client agent stays for days.
//   - A leader was stopped for longer than twice the TTL, and leads again within six minutes. It
//     ends the sessions whose time it had counted, also if another leader has renewed them.
//
// # What happens when
//
//   - A process dies: the next one gets the lock after twice the TTL and the lock delay, 45 seconds
//     by default. Nothing tells of the end of the delay, so a waiter finds it with its next poll,
//     up to 5 seconds later. See [lease.WithPoll].
//   - The leader dies: requests fail until there is another one, which takes some seconds. The new
//     leader begins the time of all sessions anew. Holds and waiters go on, unless their agent was
//     the old one.
//   - The agent dies: requests fail. Holds end in time. Another agent can be used by a new client
//     only, unless the address leads there.
//   - A reply is lost: the client reads the key.
//   - A key has not the flags of a lock, such as a configuration value or Consul's semaphore:
//     [locks.ErrForeign]. It is left alone.
//
// # Errors
//
// Each answer refuses something else. Package lease has what follows from that, see
// [lease.ErrRefused]. The table in classes.go has all answers.
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
// There are no read-write locks and no semaphores.
package consullock
