// Package caslock makes locks of any store that can replace a small document if it is still the
// same version: an object store, a configuration map, a key-value store, a row. A store needs two
// methods, see [Documents].
//
//	type bucket struct{ ... }                                             // yours
//	func (b *bucket) Load(ctx, name) (data, version, err)                 // read
//	func (b *bucket) Swap(ctx, name, data, version) (newVersion, err)     // write, if unchanged
//
//	client, err := caslock.New(&bucket{...})
//	...
//	defer client.Close(ctx)
//	err = locks.Do(ctx, client.Mutex("orders"), func(ctx context.Context) error {
//		hold, _ := locks.HoldFrom(ctx)
//		return save(ctx, order, hold.Token()) // ctx ends if the lock is lost
//	})
//
// The example of Documents is a complete store over HTTP. docs/guides/stores.md leads an author
// through it. Package lease describes the rules of all locks on stores: the local queue,
// re-entry, renewal, losses, and requests without an answer.
//
// # How it works
//
// Each lock is one document. It says which acquisition has the lock, for how long its lease is,
// and the fencing token. Every write replaces the version that its writer has read, and no two
// writes are the same. So a late write changes nothing if another write came before it. Otherwise
// the late write is carried out: a late renewal of a dead holder makes others wait for up to a
// lease more.
//
//   - An acquisition replaces the document of a free lock, and adds 1 to the token.
//   - A renewal replaces the document, but changes neither the holder nor the token. A holder
//     that finds another holder in the document has lost the lock.
//   - A release replaces the document by a version without a holder. The document and the token
//     stay.
//   - A takeover replaces the document of a holder that has died. A waiter may do so when it has
//     seen the same version for the lease in the document, and a hundredth more.
//
// No clock of the store counts, and no clock of another machine. A waiter measures by its own
// monotonic clock for how long it has seen a version, see [driver.Now]. The holder measures from
// the time when it sent its last renewal, which was before a waiter could see the version. The
// hundredth covers clocks of different speed. Package lease adds a margin on the side of the
// holder, see [lease.WithMargin].
//
// A semaphore is one document as well. It lists its holders, and each entry has a number that a
// renewal changes. A waiter measures for how long it has seen an entry. See [Client.Semaphore].
//
// After a write without an answer the client reads the document. If the version is still the
// version before the write, the client replaces the document itself. From then on the write can
// do nothing, however late it comes.
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. Each hold has a fencing token. Processes
// are not served in order: a free lock goes to the process that asks first.
//
//   - [lease.Mutex.LockContext] waits one lease for a holder that has died, from the time when this
//     client first saw the holder's document.
//   - [lease.Mutex.TryLockContext] counts a dead holder as a holder until this client has seen the
//     document for a lease, also by earlier calls. The method returns false also if other clients
//     were faster ten times.
//   - [lease.Mutex.Inspect] takes one read. It reports the waiters of this client only. The time
//     left counts from when this client first saw the document. So the reported time is too long
//     by the time between the last renewal and that read.
//
// # What it costs
//
// Requests to the store:
//
//	acquisition            a read and a write; a write if no other process has had the lock since
//	                       this client released it
//	release                a write
//	renewal                a write for each third of a lease and each hold
//	try of a held lock     a read
//	wait without Watcher   a read for each pause, see WithPolling
//	wait with Watcher      a read for each change, and each 5 s, see WithPolling
//	takeover               a read and a write
//
// A pair of an acquisition and a release takes three requests, and two if the version is known. A
// client that relied on an old version has sent one write in vain. The client then reads first,
// until it finds again that no other client had the lock.
//
// By default a waiter's pauses grow from [DefaultFirstPause] to [DefaultMostPause], 5 s. With the
// defaults a holder sends 360 writes an hour. A waiting process sends 720 to 1,440 reads an hour,
// once it has waited for 20 s. Only one goroutine of a process asks for one lock. So N waiting
// processes send up to 1,440 N reads an hour. With WithPolling(time.Second, 20*time.Second) it is
// up to 360 N, and a waiter gets the lock up to 20 s after the release.
//
// # When not to use it
//
//   - A waiter that comes after the death of the holder waits for a whole lease. So
//     TryLockContext of a new process never takes over. A job that runs once a night uses
//     LockContext, with a limit that is longer than the lease.
//   - Processes do not queue. A free lock goes to the process that asks first. A list of waiters in
//     the document would need a heartbeat of each of them. Each heartbeat would be a write of the
//     same document, and would make the holder's renewals fail and repeat. Goroutines of one
//     process wait in order of arrival.
//   - A store that cannot tell of changes makes waiters poll, which costs time and money.
//   - Locks are exclusive. Read-write locks are not available.
//
// Redis, etcd and ZooKeeper do better where they are at hand.
//
// # What has to be true of the store
//
//   - A read after a write returns that write or a later write, whichever server answers.
//   - Of two writes that replace one version, one succeeds. Not every store that offers
//     conditional writes keeps this promise.
//   - A version of a name is never used again, not even after a deletion, see [Documents]. Since
//     all writes differ, a hash of the data can serve as the version.
//
// # Faults
//
//   - The holder dies: the lock is free for a waiter that has seen its last version for a lease.
//   - The holder is stopped or cut off: its hold ends by its own clock before others can have the
//     lock. The late requests of that holder change nothing once another client has the lock.
//     Until then a late renewal makes others wait for up to a lease more. See [locks.Hold.Lost].
//   - A waiter or the holder has a clock that jumps: no effect. Only monotonic clocks count.
//   - A machine is suspended: on Linux the time counts, see [driver.Now].
//   - A document is deleted: its holder loses the lock with the next renewal. Others may get the
//     lock before that renewal, and tokens begin anew.
//   - A document is overwritten by something else: [locks.ErrForeign]. Nothing is changed. A
//     document with a holder and no lease counts as something else.
//   - A store is restored from a backup: tokens may repeat, and an old holder may be back. Wait
//     for a lease before clients start again.
package caslock
