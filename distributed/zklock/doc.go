// Package zklock has locks on ZooKeeper. They use the nodes of Apache Curator's recipes, so
// that processes in Go and in Java exclude and wake each other. A [Client] is a
// [locks.Provider], like the locks of one process.
//
//	provider, err := zklock.New(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"})
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
// # The protocol
//
// The requests of a [Client.Mutex], in their order:
//
//	exists    /orders                    its state, for the token
//	create    /orders/_c_<uuid>-lock-    ephemeral, sequential: a place in the queue
//	children  /orders                    no node has a smaller number: the lock is held
//	get       the own node               its czxid is the token; mostly known by now
//	get       the node before, watched   when it has gone, children again
//	get       the own node, watched      after 100 ms of holding the lock
//	delete    the own node               the release, which wakes the next waiter and no other
//
// The first three are sent at once. If the requests arrive in another order, or if the directory
// changes between them, an acquisition takes a round trip more.
//
// A TryLockContext that finds other nodes makes its server catch up with the leader, and asks for
// the children once more. So a try of a busy lock takes three round trips. TryLockContext adds a
// node to the directory only if it need not wait for another node.
//
// The directory is a container: the client creates it when it is missing, and ZooKeeper removes it
// when it is empty.
//
//	lock                    Curator                      under the name of the lock
//	Client.Mutex, Locker    InterProcessMutex            a node for each holder and waiter
//	Client.RWMutex          InterProcessReadWriteLock    the same, readers and writers in one queue
//	Client.SemaphoreMutex   InterProcessSemaphoreMutex   locks: the queue; leases: the holder
//	Client.Semaphore        InterProcessSemaphoreV2      the same, with a node for each permit
//	locks.Multi             InterProcessMultiLock        nothing of its own
//
// In addition, each client has one node in /locks_clients, below the namespace. The node is named
// after the number of the session, and describes the process for [lease.Mutex.Inspect].
//
// Each lock is a [lease.Mutex]: a goroutine or an explicit owner holds it, and re-entry costs no
// request. The first four are fair: clients get the lock in the order in which they asked for
// it, in any process and language. One goroutine of a process has a place in the queue of a
// lock at a time. The others wait in the process, in order.
//
// # Guarantees
//
// A hold belongs to the session in which it was acquired. The server ends a session from which it
// has not heard for the session timeout. If the server never ends a session earlier:
//
//   - At most one holder has a hold that is not lost.
//   - A holder is told of a loss before another client can get the lock: by [locks.Hold.Lost],
//     [locks.Hold.Err] and the context of [locks.Do].
//
// The client counts the session timeout that the server has granted, which may differ from the
// requested timeout. It counts from the moment when it sent the last request that the leader has
// answered, and subtracts a margin. It uses the monotonic clock only.
//
// A lost hold stays lost. An acquisition in a new session is another hold.
//
// [locks.Hold.Token] is the czxid of the holder's node. The token grows from holder to holder. It
// also grows when the directory was removed and made anew, although the numbers of nodes then begin
// at 0 again. A resource that refuses smaller tokens than the greatest it has seen is safe from a
// holder that was paused.
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. On ZooKeeper:
//
//   - A lock is made with [WithRevocation] to hear of [Client.Revoke].
//   - [Client.SemaphoreMutex] is not reentrant.
//   - [lease.Mutex.ForceUnlock] deletes the node of the holder. It returns [errors.ErrUnsupported]
//     for read-write locks and for locks of package ephemeral.
//   - [lease.Mutex.Inspect] takes two or three requests, and two for each holder and each waiter.
//     Of the waiters, the first 64 are described, and all are counted, in order of arrival. Holders
//     and waiters of Curator are part of the answer: their label is the name of their node, and
//     their host the address in it. Since is the time of the node by the clock of the servers, and
//     so the time when the wait began. The time left is known only for holds of this Client. For a
//     lock of package ephemeral, only the waiters of this Client are known. Either half of a
//     read-write lock describes both.
//   - A hold with [lease.WithFixedTTL] ends sooner than the session. If the process dies, the lock
//     is free when the session has ended.
//
// # What happens when
//
//   - A process dies: its locks are free at the end of its session, 30 seconds later at most by
//     default.
//   - A client is closed: its locks are free at once.
//   - A server cannot be reached: the session is [Suspect], and the client connects to the next
//     server. If that succeeds in time, holds and waiters go on. If not, the session is [Lost],
//     and so are its holds, a margin before the server gives the locks to others. See
//     [Client.State] and [WithState].
//   - No server can be reached: a call that has just asked for a lock fails after half of the
//     session timeout. A waiter waits on.
//   - A session is over: its holds are lost, and the client begins another session. Waiters queue
//     anew, at the end.
//   - The answer to a create is lost: the node is searched by its UUID. It is used if it
//     exists, and deleted if it turns up later.
//   - Two requests for one acquisition are under way, because the first is late: they take turns
//     and share one node. If one request fails, the node stays for the other request.
//   - A delete fails: the client repeats it until the node is gone or the session is over. An
//     unlock waits for the deletion for 3 seconds, and then returns an error. If the server refuses
//     to delete the node, the unlock returns its error at once.
//   - A context ends: the call returns at once. Its node is deleted in the background.
//   - Another client deletes the holder's node: a watch tells the holder at once, if the holder has
//     had the lock for 100 ms. When the client sets the watch, it also notices an earlier deletion.
//   - Another client deletes a waiter's node: the waiter queues anew when it is woken.
//   - ZooKeeper removes the empty directory between two requests: the client makes it again, with
//     all directories above it.
//   - The leader dies: requests wait for the next leader. Sessions go on.
//   - Unknown nodes are in the directory: no effect. Nodes of a read-write lock are
//     [locks.ErrForeign] for a mutex, and the other way round. So is an ephemeral node in place
//     of the directory. A semaphore has directories of its own, and ignores a mutex of the same
//     name.
//
// # Errors
//
// Each code of ZooKeeper refuses the request, the login, or only this moment, see
// [lease.ErrRefused]. The source has a table of all codes, in classes.go.
//
//	refused                  such as                               LockContext         unlock
//	the request              NoAuth, InvalidACL, local session     the error           the error
//	the login                AuthFailed, SASL is wanted            the error; waiters  the error
//	                                                               wait on
//	this moment              NotReadOnly, QuotaExceeded,           waits               repeated
//	                         ThrottledOp
//	no answer, may be done   ConnectionLoss, SessionMoved,         repeated for half   repeated
//	                         RequestTimeout                        of the session;
//	                                                               waiters wait on
//
// Only one error of a renewal ends a hold: the answer that the node is gone. After the error of an
// unlock, the node is deleted in the background as soon as ZooKeeper permits it.
//
// # Secured servers
//
// [WithDialer] connects with TLS, with a client certificate if the server wants one. [WithAuth]
// gives credentials of schemes such as digest, and [WithACL] protects the nodes. SASL is not
// supported, because the ZooKeeper client for Go lacks the request. If a server enforces SASL,
// [New] fails at once, with an error that matches [zk.ErrAuthFailed].
//
// # When not to use it
//
// An acquisition and its release are two writes, which a majority of servers puts on disk. If two
// holders at a time are merely inefficient, use a lock on Redis, which costs a tenth. If the lock
// guards data in a database, use the locks of that database. In one process, use package reentrant
// or named.
//
// # Limits
//
// ZooKeeper 3.5 or later. A name is a path of at most 1024 bytes, with or without a slash in
// front. Empty parts, ".", "..", control characters, characters beyond U+FFFF such as emoji, and
// names below /zookeeper are refused. A lock may be below another lock.
//
// Servers report their clients to the leader twice a tick. In an ensemble whose session
// timeouts are shorter than five ticks, set [WithMargin] to half a tick.
//
// ZooKeeper numbers the nodes of a directory with a signed 32-bit counter. After 2147483648
// acquisitions without a removal of the directory, an acquisition fails. At that point Curator
// grants a lock twice.
//
// Up to 5.4.0, Curator gives the node of a reader below a writer a number of its own. After a
// downgrade, a writer that came in between gets the lock while the reader has it. Readers here have
// the writer's number, as in later versions.
//
// [lease.WithMaxLocalHandoffs] is 0 here. With a greater value the lock goes from one goroutine of
// a process to the next without a request. Such a hand-off is fast, but not fair to other
// processes, and these holders share one token and node.
package zklock
