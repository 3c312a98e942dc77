// Package ephemeral has the naive lock on ZooKeeper: one ephemeral node for each lock, which all
// waiters watch. It exists to show the herd effect. Do not use it for work: use
// [zklock.Client.Mutex], which has the same methods.
//
//	client, err := zklock.New(ctx, servers)
//	...
//	err = locks.Do(ctx, ephemeral.New(client, "orders"), work)
//
// # How it works
//
// The requests of one acquisition, in their order:
//
//	create  /orders            ephemeral: the lock is held if it did not exist
//	get     the own node       its czxid is the token
//	get     /orders, watched   if it exists; when it has gone, create again
//	delete  /orders            the release
//
// # When not to use it
//
//   - Many clients wait: each release wakes all of them, and each sends two requests. Of 100
//     waiters 99 are woken in vain. [zklock.Client.Mutex] wakes one.
//   - A waiter must not starve: one of those that are woken acquires the lock, at random. There is
//     no order.
//   - Java takes part: Curator lacks such a lock.
//   - The holder shall hear that another client wants the lock: [lease.Mutex.Revoke] returns
//     [errors.ErrUnsupported], and so does a forced release.
//   - The waiters must be visible: [lease.Mutex.Inspect] knows only waiters of this client, and
//     [zklock.Client.Names] does not list the lock.
//
// # When it does
//
// It demonstrates the effect, and measures it against the queue: one node and one watch a waiter
// are the least that a lock on ZooKeeper can have.
//
// Guarantees, losses and tokens are as in package zklock. A node of the same name that is not
// ephemeral is [locks.ErrForeign].
package ephemeral
