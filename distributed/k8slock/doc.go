// Package k8slock has locks that are Lease objects of Kubernetes, of the API group
// coordination.k8s.io/v1. It writes their native fields: kubectl shows the holder, and leader
// elections of client-go without ReleaseOnCancel and these locks exclude each other. No cluster
// needs anything installed.
//
//	config, err := rest.InClusterConfig()
//	...
//	api, err := coordinationv1client.NewForConfig(config)
//	...
//	client, err := k8slock.New(api, "shop", caslock.WithLabel(os.Getenv("HOSTNAME")))
//	...
//	defer client.Close(ctx)
//	err = locks.Do(ctx, client.Mutex("nightly-report"), func(ctx context.Context) error {
//		hold, _ := locks.HoldFrom(ctx)
//		return report(ctx, hold.Token()) // ctx ends if the lock is lost
//	})
//
// Package caslock describes how the locks work, their cost, and the effect of failures. Package
// lease describes the rules of all locks on stores. The README has the rules of RBAC that a program
// needs.
//
// # The object
//
// A lock is the Lease object of its name in the namespace of the client:
//
//	spec.holderIdentity        the label, "_", and the acquisition. Empty: a free lock
//	spec.leaseDurationSeconds  the lease, rounded up to seconds. 1 if the lock is free
//	spec.acquireTime           when the holder acquired the lock, by its clock
//	spec.renewTime             when the object was written last, by the clock of the writer
//	spec.leaseTransitions      the fencing token
//	metadata.resourceVersion   what a write compares
//	metadata.labels            jucgo.github.io/lock: "true", by which Names finds the object
//	metadata.annotations       jucgo.github.io/lock: host, process id, and more
//
// A write is a POST of a new object, or a PATCH with the resourceVersion. Other labels,
// annotations and owners of the object stay. An object that a release has left keeps the token:
// do not delete it.
//
// Names are names of objects: letters in lower case, digits, "-" and ".", at most 253 of them.
// Another name is refused by each method. Locks in different namespaces are different locks.
//
// A lease is in whole seconds. A lease of 500 ms ends for its holder after 500 ms. After the
// death of the holder, others wait for a second. renewTime moves by a second with each renewal at
// least, because client-go compares whole seconds. With a lease of less than 3 s, it runs ahead
// of the clock.
//
// # Beside the leader election of client-go
//
// A candidate of k8s.io/client-go/tools/leaderelection with a LeaseLock of the same name and a
// lock here exclude each other under two conditions:
//
//   - Do not set ReleaseOnCancel beside these locks. A leader that was stopped or cut off in a
//     request for longer than its lease then writes an empty holderIdentity without a look at the
//     holder. It can free a hold here. The next process gets the lock at once, with a greater
//     token. The holder learns of its loss by its next renewal, a third of its lease later at
//     most, or by its release. Until then there are two holders.
//   - Use client-go 0.27 or later. An older candidate takes over after its own LeaseDuration, not
//     after the object's leaseDurationSeconds. Electors of other languages, such as fabric8's, do
//     the same. Beside such electors, set [caslock.WithTTL] no longer than the shortest
//     LeaseDuration.
//
// These are the rules of a candidate, as in version 0.37:
//
//   - A candidate takes an object without a holderIdentity at once. It takes an object with a
//     holder when it has seen no change for the leaseDurationSeconds of the object, by its own
//     monotonic clock. It writes the LeaseDuration of its own configuration, cut to whole seconds.
//   - It compares the fields of spec, with times in whole seconds. So a lock moves renewTime by a
//     second at least.
//   - With ReleaseOnCancel, it writes an empty holderIdentity and a lease of a second when its
//     context ends, or when it could not renew. A lock here takes such an object at once.
//   - A leader that cannot renew stops RetryPeriod + RenewDeadline after its last renewal. The sum
//     must be less than LeaseDuration, as with the defaults of Kubernetes: LeaseDuration 15 s,
//     RenewDeadline 10 s and RetryPeriod 2 s.
//   - It retries after RetryPeriod, without a watch. A waiter here is told of a release at once. So
//     it gets a contended lock more often than a candidate.
//
// The token grows with each holder of any program: a candidate that becomes the leader adds 1 to
// leaseTransitions too. It adds nothing if the object names its own identity already, as after a
// restart with a fixed identity: then nobody else was the holder in between. An object that a
// candidate has created has the token 0, and the next lock gets 1. After a deletion tokens begin
// anew.
//
// [lease.Mutex.ForceUnlock] does not stop a leader of client-go. The leader acquires the lock
// again if it is free by the next retry. If a lock here was faster, the leader goes on until
// RenewDeadline is over: two holders. Delete its pod instead.
//
// An object with a spec.strategy is foreign, see [locks.ErrForeign]: the API server chooses its
// holder. An object that has a holder and no leaseDurationSeconds is foreign too.
//
// # Requests
//
// A client sends the requests that package caslock describes. A renewal is a PATCH, each third of a
// lease. Waiters watch their one object. Each renewal of the holder is a change: waiters are
// notified, and read the object. So one waiting process reads every five seconds or sooner, and
// when its watch begins twice.
//
// The client-side limit of client-go, 5 requests a second by default, does not apply: other
// requests of the same client would delay renewals until a hold is lost. Its repetitions of
// writes are off. A request ends after five seconds without an answer.
//
// Requests and watches of a client share one connection. client-go finds out that it is broken 45 s
// after the last answer: later than a lease of 30 s ends. The environment variables
// HTTP2_READ_IDLE_TIMEOUT_SECONDS (30 if not set) and HTTP2_PING_TIMEOUT_SECONDS (15) change these
// 45 s. With 5 and 5, a hold of 30 s survives a broken connection.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers.
//
//	the request   Forbidden, Invalid, a missing namespace
//	the login     Unauthorized, and Forbidden for system:anonymous: a waiter waits on, and a release
//	              is repeated until the hold's end
//	the moment    TooManyRequests, a server that starts, a webhook that does not answer, a full etcd
//	in doubt      ServerTimeout, Timeout, ServiceUnavailable, errors of etcd: as the moment, and the
//	              client finds out what became of a write
//	unclear       InternalError: a first request returns the error, and a waiter waits on
//
// # Versions
//
// The API server must be of Kubernetes 1.14 or later. Objects and their versions are in etcd, so a
// lock survives the death of an API server. If etcd is restored from a backup, versions come again:
// stop the programs before, and start them a lease later.
package k8slock
