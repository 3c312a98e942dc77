// Package leader elects one leader among the processes that compete for a lock.
//
// [Run] campaigns for the lock, and runs a function while this process leads. After a loss of the
// lock, or an error of the store, it campaigns again:
//
//	err := leader.Run(ctx, client.Mutex("cron"), func(ctx context.Context) error {
//		return schedule(ctx) // until ctx ends
//	})
//
// Every [locks.TryLocker] will do. The lock decides between the candidates: a fair lock elects the
// candidate that has waited longest.
//
// # Two leaders
//
// The context of the function ends before the store can give the lock to another process. The
// function must return then. Run releases the lock only after the function has returned, and
// campaigns again only after that. Therefore two functions overlap only if the lock was lost and
// the old function still runs.
//
// No lock can prevent that overlap. A function may ignore its context. A process may be paused,
// by a garbage collection, a debugger or a suspended machine, between the moment when it looks at
// its context and the moment when it writes. Two measures help:
//
//   - Send the fencing token with each write, and make the resource refuse smaller tokens. See
//     [locks.HoldFrom], [locks.Hold.Token] and package distributed/fence.
//   - Call [locks.Hold.Err] before a step that cannot be undone. It compares the clock with the
//     deadline of the hold, and so is right even on the first line after a pause.
//
// # When Run returns
//
//   - The function returned while it led. Run returns the function's result, also nil.
//   - ctx ended. The error matches the error of ctx and its cause. Run waits for the function
//     before it returns.
//   - The lock cannot be acquired again: the error matches [locks.ErrClosed] or
//     [locks.ErrForeign].
//
// Run does not return after a loss, whatever the function returned, nor after other errors of the
// store. [WithOnError] receives those errors.
//
// # Differences from other elections
//
// The elector of Kubernetes' client-go returns after a loss, can release its lease while the
// function still runs, and calls OnStoppedLeading for candidates that never led. Here [WithOnLost]
// follows each [WithOnGained], after the function has returned, and [WithNewLeader] is its
// OnNewLeader. Curator's LeaderSelector campaigns again on request. A candidate whose store fails
// can leave its election without a sign. Here a candidate leaves the election only when Run
// returns. The Campaign of etcd's Election does not return when its session expires.
package leader
