// Package etcdlock has locks on etcd, in the layout of etcd's own concurrency.Mutex. The locks of
// both exclude and wake each other. A [Client] is a [locks.Provider]: it takes the place of the
// locks of one process.
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
//	Client.Semaphore      none                               <prefix>%sem/<lease>
//
// Each lock is a [lease.Mutex]: owned by a goroutine or an explicit owner, reentrant, and renewed
// while held. See package lease for the local queue, and for the cost of re-entry.
//
// # Guarantees
//
// At most one holder has a hold that is not lost, whichever minority of the members fails. Every
// holder is told of its loss before others can get the lock: by [locks.Hold.Lost],
// [locks.Hold.Err] and the context of [locks.Do]. No clock is compared with another machine's.
//
// Processes get the lock in order of arrival, which is the order of create revisions. The create
// revision is the fencing token. It increases from holder to holder, also across locks, members
// and restarts. With [lease.WithMaxLocalHandoffs], which is off here, local waiters have several
// turns in a row with one token.
//
// A paused program may go on to work after its loss. The resource must check the token to refuse
// such work.
//
// # The session
//
// All keys of a Client are under one etcd lease, its session, as with etcd's own mutex. The
// Client keeps the session alive while there are holds or waiters. So a lock and an unlock are
// two requests. If a Client has several keys below one prefix, such as for several readers, all
// but the first key end with -1 and so on.
//
// The Client counts the time of a hold from its last answered request, as if the cluster had
// received nothing later. If the session ends, all holds of the Client are lost. Its waiters
// begin anew in the next session. A session without holds and waiters ends when two fifths of its
// time are over.
//
// etcd counts leases in whole seconds. Others get the locks of a process that died after
// [WithTTL] rounded up, or later if an election delays the end of the session. Others never get
// these locks sooner.
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. On etcd:
//
//   - [lease.Mutex.ForceUnlock] deletes the key of the holder. It returns [errors.ErrUnsupported]
//     for read-write locks.
//   - [lease.Mutex.Inspect] takes one request, and one more for each holder, for the time left in
//     whole seconds. The answer has all waiters in order of arrival, including clients of etcd's
//     own mutex. The label of such a client is the name of its key, which is the id of its lease.
//     Either half of a read-write lock describes both.
//   - No hold and no extension is longer than [WithTTL], the time of the session. A hold with
//     [lease.WithFixedTTL] ends sooner. If the process dies, the lock is free when the session has
//     ended.
//
// # What happens when
//
//   - A process dies: its locks are free when its session ends, 30 seconds at most by default.
//   - The cluster cannot be reached: holds are lost a margin before the end of the session. Waiters
//     keep waiting. A shorter interruption, such as an election, does no harm: the Client makes
//     gRPC connect again at once, where gRPC alone would wait longer and longer.
//   - A waiter is cut off or stopped for longer than its session: it queues anew at the end. So
//     does a waiter whose lease is revoked or whose key is deleted.
//   - The reply to an acquisition is lost: the request is sent again, and creates one key at
//     most.
//   - Two requests for one acquisition are under way, because the first is late: they take turns
//     and share one key. If one request fails, the key stays for the other request.
//   - The reply to a release is lost: the request is sent again, and the unlock succeeds. If no
//     release is answered in time, the Client deletes the key the next time it keeps the session
//     alive, or the key ends with the session.
//   - A context ends: the call returns at once, and its key is deleted in the background.
//   - A request to put or delete a key gets no answer: the next acquisition begins another session.
//     The old session is revoked as soon as nothing else needs it. From then on a late request does
//     nothing. Before that, a key that a late request creates is deleted within two fifths of
//     [WithTTL].
//   - The session's lease is revoked, or a holder's key deleted: the holders get
//     [ErrSessionExpired]. Holders whose holds are older than 100 ms get it at once, others at
//     the next renewal at the latest.
//   - A member lags behind the others: the Client ignores an event that is older than the key it
//     watches.
//   - A watch is cancelled, or its events are compacted away: the waiter reads and watches anew.
//   - A key without a lease is among the keys of the lock: [locks.ErrForeign]. Nothing is
//     overwritten.
//   - The quota is used up (NOSPACE), the data of members differ (CORRUPT), or a member is
//     overloaded: LockContext waits, and holds are renewed. See "Errors".
//   - A snapshot is restored: revisions and tokens may repeat, as etcd documents.
//
// # Errors
//
// Each error of etcd refuses the request, the login, or only this moment, see [lease.ErrRefused].
// The source has a table of all errors, in classes.go.
//
//	refused                     such as                             LockContext            unlock
//	the request                 permission denied, too large        the error              the error
//	the login                   invalid token, wrong password       the error; waiters     the error
//	                                                                wait on
//	this moment                 no space, corrupt, too many         waits                  repeated
//	                            requests, no leader, a learner
//	no connection was made      refused connections                 the error after half   repeated
//	                                                                of the session; waiters
//	                                                                wait on
//	no answer, may be done      timeouts, leader changed, stopped   repeated, waits        repeated
//
// No error of a renewal ends a hold. After the error of an unlock, the key is deleted in the
// background as soon as the cluster permits it.
//
// # When not to use it
//
// etcd answers after a majority has written to disk, and a lock and an unlock are two such
// writes. A Redis server is quicker, if two holders now and then do no harm. Within one process,
// use package reentrant or named.
//
// # Limits
//
// Names have 4096 bytes at most. All requests except the requests that keep leases alive go through
// the client that [New] was given, including namespaces of package namespace. A hold older than 100
// ms has one watch, and a waiter has two. Each watch runs one goroutine here and one in the etcd
// client.
package etcdlock
