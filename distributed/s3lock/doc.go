// Package s3lock has locks in a bucket on S3, or on another store with its interface. Each lock is
// an object. Nothing else is needed: no server, no table, no clock that is the same everywhere.
//
//	client := s3.NewFromConfig(config) // of github.com/aws/aws-sdk-go-v2
//	provider, err := s3lock.New(client, "my-bucket")
//	...
//	defer provider.Close(ctx)
//	err = locks.Do(ctx, provider.Mutex("nightly"), func(ctx context.Context) error { ... })
//
// The lock "nightly" is the object locks/nightly.json, see [WithPrefix]. It has the holder, its
// lease, and the fencing token. [New] returns the client of package caslock, which has the rules.
// Each change of the object replaces the version that its writer has read, by If-Match with its
// ETag. A new object is written with If-None-Match. A waiter takes over the lock of a holder that
// has died once it has seen one version for a lease.
//
// # Which stores are safe
//
// Of several writes that replace one version, one may succeed. Amazon S3 keeps that promise. Stores
// that ignore the conditions do not, and neither do stores that compare and write in two steps. So
// a client tests the store before its first write, see [Probe]. The test finds every store that
// ignores conditions. It finds a race between two steps only by chance. Call Probe a thousand times
// before you rely on a store that you do not know. [WithoutProbe] is for a store that you know.
//
// The tests run on versitygw 1.8, which keeps the promise. moto 5.2 compares and writes in two
// steps. A bucket that is replicated is safe if all clients use the same copy of it.
//
// # What it costs
//
// Requests, as of caslock:
//
//	acquisition           a read and a write; a write if the version is known
//	release               a write
//	renewal               a write for each third of a lease
//	try of a held lock    a read
//	wait                  a read for each pause, see [WithPolling]
//	first write           up to 20 requests of the probe, 16 of them writes
//
// With the defaults a holder sends 360 writes an hour, and each waiting process up to 1,440 reads.
// README.md has the price of these requests at Amazon, and how to choose the lease.
//
// # Names
//
// A name may have slashes. The parts between them must not be empty, "." or "..", and have 200
// bytes at most. The key has 1,024 bytes at most, and no control characters. A semaphore's name has
// ten bytes less, for ".semaphore". A store may have further limits. Its errors say so.
//
// # When something fails
//
//   - A write gets no answer within ten seconds: the client finds out whether the write was carried
//     out. The SDK repeats nothing, because a repeated write would conflict with the first write.
//   - The bucket is out of reach: the hold ends by the clock of its holder, before others can have
//     the lock. Waiters keep waiting.
//   - A right is missing, or the bucket: the error says which. Without s3:ListBucket, S3 answers
//     the first read of a new lock as if s3:GetObject were missing.
//   - The clock of a machine is wrong by 15 minutes: S3 refuses a request, and the library signs the
//     next request by the time in the answer. If a proxy removes that time, all requests are
//     refused: the holder loses its lock at the end of its lease. No clock is compared otherwise.
//   - The object is deleted, such as by a lifecycle rule: its holder learns of its loss with the
//     next renewal, and another process may have the lock before that. Tokens begin anew.
//   - The object is something else: [locks.ErrForeign]. Nothing is overwritten.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers, also of other stores.
//
//	the request   a missing right, a missing bucket, another region, no conditional writes
//	the login     ExpiredToken, InvalidAccessKeyId, SignatureDoesNotMatch, RequestTimeTooSkewed
//	              and others: a waiter waits on, and a release is repeated until the hold's end
//	the moment    a store that is full, a redirect
//	in doubt      SlowDown, InternalError, RequestTimeout, 429, 5xx: as the moment, and the client
//	              finds out what became of a write
//
// # When not to use it
//
// A release is noticed with the next poll, after up to 5 s by default. Processes are not served in
// order, and read-write locks are missing. Redis, etcd and ZooKeeper do better where they are at
// hand.
package s3lock
