// Package zklock has locks on ZooKeeper, with the nodes of Apache Curator's recipes, so that processes in Go and in Java
// exclude and wake
// each other. A [Client] is a [locks.Provider]: it takes the place of the locks of one process.
//
//	provider, err := zklock.New(ctx, []string{"zk1:2181", "zk2:2181", "zk3:2181"})
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	lock                      Curator                       under the lock's name
//	Client.Locker, Lock       InterProcessMutex             a node for each who holds or waits
//	Client.ReadWriteLocker    InterProcessReadWriteLock     the same, readers and writers in one queue
//	Client.SemaphoreLocker    InterProcessSemaphoreMutex    locks: who acquires; leases: who holds
//	locks.Multi               InterProcessMultiLock         none of its own
//	Client.EphemeralLocker    none                          the name itself is the node, for the lesson
//
// All are [lease.Lock]: owned by a goroutine or an explicit owner, and counted here if taken again, which costs no round
// trip. The first
// three are fair: whoever asked first gets it first, whatever its process and language. Of one process and name, one
// goroutine at a time
// has a place in the queue of ZooKeeper; the others wait here, in order.
//
// # Guarantees
//
// A hold lasts as long as the session with ZooKeeper in which it was acquired. The server ends a session from which it has
// not heard for
// the session timeout. As long as it does not do so earlier, there is one holder at a time among those whose hold is not
// lost, and every
// holder is told of its loss before anybody else can get the lock: [locks.Hold.Lost], [locks.Hold.Err] and the context of
// [locks.Do]
// say so. What counts is the session timeout that the server has granted, which need not be the one asked for, from the
// moment when
// the last request was sent that the leader confirmed, less a margin. No clock that can be set matters.
//
// A new session brings nothing back: a hold that was lost stays lost, and what is acquired anew is another hold.
//
// [locks.Hold.Token] is the zxid of the change that made the holder's node. It grows from holder to holder, also when the lock's
// directory was removed and made anew, where the numbers of the nodes begin at 0 again. A resource that refuses smaller
// tokens than it has
// seen is safe from a holder that does not look, or was paused.
//
// # What happens when
//
//   - A process dies: its locks are free with its session, 30 seconds later at most by default. A client that is closed
//     frees them at once.
//   - A server cannot be reached: the session is [Suspect], and another server is asked. If one answers in time, nothing has
//     happened; waiters keep their places and miss nothing. If not, it is [Lost], and all holds are, a margin before the server
//     gives them to others. See [Client.State] and [WithState].
//   - A session is over: its holds are lost at once, and a new one is begun. Who waits queues anew, at the end.
//   - The reply to a creation is lost: the node is looked for by its UUID, and used if the session is still the same, or deleted.
//   - A deletion fails: it is repeated in the background until the node is gone or the session is. An unlock waits for that for 3
//     seconds, and returns an error then. So does a loss after which the session lives on.
//   - A context ends: the call returns at once. Its node is deleted, whatever becomes of requests under way.
//   - Somebody deletes the holder's node: the holder is told by a watch, at once if it has had the lock for a fifth of a second.
//     Before, there may be none: most nodes are gone by then. A waiter queues anew, when its turn would have come at the latest.
//   - The empty directory is removed by ZooKeeper: it is made anew, with all above it, as containers.
//   - The leader dies: there is no answer until there is a new one. Sessions go on.
//   - Something else is in the directory: it is ignored. But nodes of a read-write lock for a mutex, and the other way round, are
//     [locks.ErrForeign], and so is an ephemeral node where the directory should be, or, for an EphemeralLocker, a node that is not
//     ephemeral. A semaphore has directories of its own below its name, and does not notice a mutex that is called the same.
//   - No server can be reached for half of the session timeout or a little more, while a lock is asked for or waited for: the call
//     returns an error.
//
// # When not to use it
//
// Each acquisition and its release are two writes that a majority of servers puts on disk; of a lock that is free they take one round
// trip each. If two holders at a time are merely
// inefficient, a lock on Redis costs a tenth. If what is to be guarded is in a database, its own locks are one thing less that
// can fail. If everything is in one process, take packages reentrant or named.
//
// # Limits
//
// ZooKeeper 3.5 or later. A name is a path, with a slash in front or without, of at most 1024 bytes; empty parts, ".", "..",
// control characters
// and what is below /zookeeper are refused. A lock may be below another one: only the nodes matter.
//
// A server that has lost its leader answers reads for a while. Renewals therefore ask the leader too. But servers pass on their
// clients' signs of life only twice a tick: in an ensemble whose session timeouts are less than five ticks, [WithMargin]
// should be
// half a tick.
//
// The number of a node is a signed 32-bit counter of its directory. When it has run over after 2147483648 acquisitions
// without a moment at which
// the directory was removed, an acquisition fails, where Curator grants a lock twice.
//
// Up to 5.4.0, Curator gives the node of a reader below a writer a number of its own, so that after a downgrade a writer
// that came in
// between gets the lock beside the reader. Readers here have the writer's number, as in later versions.
//
// With [lease.WithMaxLocalHandoffs], which is off here, the lock goes from one goroutine of a process to the next without ZooKeeper
// knowing: fast, but
// not fair to others, and holders share their token and node.
package zklock
