// Package gcslock has locks in a bucket of Google Cloud Storage. Each lock is an object. Nothing
// else is needed: no server, no table, no clock that is the same everywhere.
//
//	client, err := google.DefaultClient(ctx, "https://www.googleapis.com/auth/devstorage.read_write")
//	...
//	provider, err := gcslock.New(client, "my-bucket")
//	...
//	defer provider.Close(ctx)
//	err = locks.Do(ctx, provider.Mutex("nightly"), func(ctx context.Context) error { ... })
//
// DefaultClient is a function of golang.org/x/oauth2/google. Its context must last as long as the
// provider. This package speaks the JSON API, and needs no library of Google's.
//
// The lock "nightly" is the object locks/nightly.json, see [WithPrefix]. It has the holder, its
// lease, and the fencing token. [New] returns the client of package caslock, which has the rules.
// Each change of the object replaces the generation that its writer has read, by ifGenerationMatch.
// Generation 0 is an object that is not there. A waiter takes over the lock of a holder that has
// died once it has seen one generation for a lease.
//
// # What Google promises
//
// Reads are consistent: after a write has succeeded, each read returns its data or later data. The
// name and the generation belong to one state of an object. So no generation comes again, not even
// after a deletion. Of several writes that replace one generation, one succeeds. All locations and
// classes of buckets keep these promises, also locations of two regions. So the client does not
// test the store, as package s3lock does.
//
// The tests run on fake-gcs-server 1.56, which is not Google's. In the tests, of eight racing
// writers, one has succeeded each time.
//
// # One write a second
//
// Google permits about one write of an object a second, by all clients together, and refuses others
// with the status 429. An acquisition repeats such a write after pauses that double from 20 ms to 2
// s. TryLockContext returns the error. A renewal is repeated after a thirtieth of the lease. A
// release is repeated for three seconds, see [lease.WithReleaseTimeout]. Then it returns
// [locks.ErrLost], and goes on in the background. Google's limit restricts each lock by itself.
// Locks do not restrict each other.
//
//   - A lock goes from holder to holder at most once in two seconds: a release and an acquisition
//     are a write each.
//   - Renewals take three writes for each lease. So a lease has 15 seconds or more, see [WithTTL].
//   - A semaphore is one object, which all holders renew. With the default lease of 30 seconds, ten
//     processes that hold permits use up all writes. No write is left for acquisitions and
//     releases. With a lease of five minutes, fifty processes use half of them.
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
//
// With the defaults a holder sends 360 writes an hour, and each waiting process up to 1,440 reads.
// README.md has the price of these requests at Google, and how to choose the lease.
//
// # Names
//
// A name may have slashes. The parts between them must not be empty, "." or "..". The object's name
// has 1,024 bytes at most, of which 11 are "locks/" and ".json". A semaphore's name has ten bytes
// less, for ".semaphore". Control characters are refused.
//
// # When something fails
//
//   - A write gets no answer within ten seconds, or an answer with the status 5xx: the client finds
//     out whether the write was carried out.
//   - The token has expired or was revoked: see "Errors".
//   - The bucket is out of reach: the hold ends by the clock of its holder, before others can have
//     the lock. Waiters keep waiting.
//   - A right is missing, or the bucket: the error says which. A bucket with a retention policy
//     refuses to replace objects, and cannot have locks.
//   - The object is deleted, such as by a lifecycle rule: its holder learns of its loss with the
//     next renewal, and another process may have the lock before that. Tokens begin anew.
//   - The object is something else: [locks.ErrForeign]. Nothing is overwritten.
//   - The bucket is public: Google answers from a cache, with a document that is up to an hour old.
//     Two holders at once are still impossible, since writes compare. But waiters do not see a
//     release. Let nobody else read the bucket.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers.
//
//	the request   400, 403, 404: a missing right, the bucket, a retention, a hold of the object
//	the login     401: a waiter waits on, and a release is repeated until the hold's end
//	the moment    429, and 403 with rateLimitExceeded, userRateLimitExceeded or quotaExceeded
//	in doubt      408, 499, 5xx: as the moment, and the client finds out what became of a write
//
// # When not to use it
//
// A release is noticed with the next poll, after up to 5 s by default. Processes are not served in
// order, and read-write locks are missing. Redis, etcd and ZooKeeper do better where they are at
// hand.
package gcslock
