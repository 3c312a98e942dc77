// Package etcdlock has locks on etcd, in the layout of etcd's own concurrency.Mutex. Both exclude
// and wake each other. A [Client] is a [locks.Provider]: it takes the place of the locks of one
// process.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
//	provider, err := etcdlock.New(client)
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                  etcd                               keys
//	Client.Mutex          concurrency.Mutex, Client.Prefix   <prefix>/<lease in hex>
//	Client.MutexLocker    concurrency.Mutex, any prefix      the same
//	Client.RWMutex        none                               <prefix>%rw/read/<lease>
//	                                                         <prefix>%rw/write/<lease>
//
// Each is a [lease.Mutex]: owned by a goroutine or an explicit owner, reentrant, and renewed
// while held. See package lease for the local queue, and for the cost of re-entry.
//
// # Guarantees
//
// At most one holder has a hold that is not lost, whichever minority of the members fails. Every
// holder is told of its loss before others can get the lock: by [locks.Hold.Lost],
// [locks.Hold.Err] and the context of [locks.Do]. No clock is compared with another machine's.
//
// Processes get the lock in order of arrival: that of create revisions. The create revision is
// the fencing token. It increases from holder to holder, also across locks, members and restarts.
// With [lease.WithMaxLocalHandoffs], which is off here, local waiters have several turns in a row
// with one token.
//
// A paused program may go on to work after its loss. Against that the resource checks the token.
//
// # Leases
//
// Each hold and each waiter has an etcd lease of its own, which is kept alive while the last
// answer says that it exists. A hold ends here when the lease would end if the cluster had seen
// nothing after the last answered request. A lease is reused when no request sent under it can
// arrive any more. So a lock and an unlock are two requests.
//
// etcd counts leases in whole seconds. Others get the lock of a process that died after [WithTTL]
// rounded up, or later if an election delays that. Never sooner.
//
// # What happens when
//
//   - A process dies: its locks are free when their leases end, 30 seconds at most by default.
//   - The cluster cannot be reached: holds are lost a margin before the end of their leases.
//     Waiters keep waiting. A shorter interruption, such as an election, has no effect.
//   - A waiter is cut off or stopped for longer than its lease: it begins anew at the end of the
//     queue, woken as before. So does a waiter whose lease is revoked or whose key is deleted.
//   - A reply to an acquisition is lost: it is sent again, and creates one key at most.
//   - A reply to a release is lost: it is sent again, and the unlock succeeds.
//   - A context ends: the call returns at once, and its key is deleted in the background. If a
//     request has no answer, its lease is revoked, so that a late request does nothing.
//   - A holder's lease is revoked, or its key deleted: the holder is told at once if the hold is
//     older than 100 ms, and at the next renewal at the latest, with [ErrSessionExpired].
//   - A watch is cancelled, or its events are compacted away: the waiter reads and watches anew.
//   - A key without a lease is among those of the lock: [locks.ErrForeign]. Nothing is overwritten.
//   - A snapshot is restored: revisions may repeat, and so may tokens, as etcd documents.
//
// # When not to use it
//
// etcd answers after a majority has written to disk, and a lock and an unlock are two such
// writes. A Redis server is quicker, if two holders now and then do no harm. Within one process,
// use package reentrant or named.
//
// # Limits
//
// Names have 4096 bytes at most. All requests except those that keep leases alive go through the
// client that [New] was given, including namespaces of package namespace. A hold older than 100
// ms has one watch, and a waiter has two. Each watch is a goroutine here and one of the client's.
package etcdlock
