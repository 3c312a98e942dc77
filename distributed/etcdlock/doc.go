// Package etcdlock has locks on etcd, in the layout of etcd's own concurrency.Mutex, so that both exclude and wake each other. A
// [Client] is a [locks.Provider]: it takes the place of the locks of one process.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
//	provider, err := etcdlock.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                     etcd                                 keys
//	Client.Locker, Mutex     concurrency.Mutex on Client.Prefix   <prefix>/<lease in hex>
//	Client.MutexLocker       concurrency.Mutex on any prefix      the same
//	Client.RWMutex           none                                 <prefix>%rw/read/<lease>, <prefix>%rw/write/<lease>
//
// All are [lease.Mutex]: owned by a goroutine or an explicit owner, reentrant, renewed while held. Who waits in this process and
// what re-entry costs is told there.
//
// # Guarantees
//
// There is one holder at a time among those whose hold is not lost, whichever minority of the members fails. Every holder is
// told of its loss before anybody else can get the lock: [locks.Hold.Lost], [locks.Hold.Err] and the context of [locks.Do] say
// so. No clock is compared with another machine's.
//
// Processes get the lock in the order in which they asked for it. The order is that of create revisions, and the create revision is
// the fencing token: it increases from holder to holder, also across locks, members and restarts. With [lease.WithMaxLocalHandoffs], which is off
// here, a cohort within a process takes the lock in turns first, much faster, and with one token. A program that was paused, or does not look, goes on to work after
// its loss. Against that the resource needs to check the token.
//
// # Leases
//
// Each hold, and each waiter, has an etcd lease of its own, which is kept alive as long as the last answer says that it is
// there. A hold is over, here, when the lease would be if nothing sent since the last answered request had got there. Leases are
// used again when nothing that was sent under them can arrive any more; so that a lock and an unlock are two requests.
//
// etcd counts leases in whole seconds: others get the lock of a process that died after [lease.WithTTL] rounded up, or later
// if the cluster's election timeout or a change of the leader makes it so. Never sooner.
//
// # What happens when
//
//   - A process dies: its locks are free when their leases are over, 30 seconds at most by default.
//   - The cluster cannot be reached: holds are lost a margin before the end of their leases. An interruption that is shorter,
//     such as the election of a leader, does nothing; waiters keep their places.
//   - A reply is lost: of an acquisition, it is sent again, which creates the key once at most; of a release, likewise. Neither
//     counts twice.
//   - A context ends: the call returns at once, and its key is deleted in the background. If anything was not answered, its lease
//     is revoked, so that what arrives later does nothing. If that does not get through, nobody keeps the lease alive.
//   - A lease is revoked, or a key deleted: the holder is told at once if the hold is more than a moment old, and at the next
//     renewal at the latest. A waiter's LockContext returns [ErrSessionExpired].
//   - A watch is cancelled, or what it was to tell is compacted away: the waiter looks again, and watches anew.
//   - There is a key without a lease among those of the lock: [locks.ErrForeign]. Nothing is overwritten.
//   - A snapshot is restored: as etcd's documentation has it, revisions may repeat then, and so may tokens.
//
// # When not to use it
//
// etcd answers after a majority has written to disk: a lock and an unlock are two such writes. If nobody is wrong when now and
// then two hold the lock, a Redis server is quicker. If everything is in one process, take packages reentrant or named.
//
// # Limits
//
// Names have 4096 bytes at most. Requests other than the keeping alive of leases go through the client that [New] was given,
// namespaces of package namespace included. A hold that is not brief has a watch, and a waiter two, each of which is a goroutine
// here and one of the client's.
package etcdlock
