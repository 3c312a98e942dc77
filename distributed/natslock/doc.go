// Package natslock has locks in a key-value bucket of NATS JetStream. Each lock is a key. Its
// revision is compared and replaced, as package caslock says.
//
//	conn, err := nats.Connect("nats://localhost:4222", nats.MaxReconnects(-1))
//	js, err := jetstream.New(conn)
//	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "locks", Replicas: 3})
//	client, err := natslock.New(ctx, js, "locks")
//	...
//	defer client.Close(ctx)
//	err = locks.Do(ctx, client.Mutex("orders"), func(ctx context.Context) error {
//		hold, _ := locks.HoldFrom(ctx)
//		return save(ctx, order, hold.Token()) // ctx ends if the lock is lost
//	})
//
// The client is a [caslock.Client], a [locks.Provider]. See package caslock for the protocol and
// its limits, and package lease for the local queue, re-entry, renewal and losses.
//
// # Guarantees
//
// At most one holder has a hold that is not lost, whichever minority of the servers fails. Every
// holder is told of its loss before others can get the lock: by [locks.Hold.Lost], [locks.Hold.Err]
// and the context of [locks.Do]. The fencing token grows by 1 from holder to holder. See "What
// breaks it" below for the limits of these guarantees.
//
//   - Writes are messages with an expected last sequence of their subject. A message is sent once.
//     If it was sent twice, the second message would find another sequence.
//   - Reads go to the leader of the stream by STREAM.MSG.GET. A Get of the library's KeyValue may
//     be answered by a replica that lags behind, since buckets allow direct gets.
//   - A leader that was stopped or cut off may answer reads with an old state until it learns of
//     the next leader. Such a leader can replace nothing, since a write needs a majority. At worst,
//     an old state makes a holder believe that it has lost the lock. The lock then stays taken for
//     a lease.
//
// # What it costs
//
// A pair of an acquisition and a release is a read and two writes. It is two writes if no other
// process had the lock since. A renewal is a write for each third of a lease and each hold. Each
// request is one round trip. With replicas, a write adds a round trip between the servers.
//
// A waiter creates a consumer for the time of its wait, and deletes it: two more requests. In a
// cluster a consumer is known to all servers. The consumer notifies of a release at once. A waiter
// also reads after each renewal of the holder, and each 5 seconds.
//
// # What breaks it
//
//   - A loss of power. Servers write to their disk at once, but flush it only every two minutes by
//     default (sync_interval). A single server then forgets holds, releases and tokens of up to two
//     minutes. Of three servers, two can forget a write together: both lost power, or one lost
//     power and the other lagged behind. Then another process may get a held lock, with a token
//     that was used before. Set "sync_interval: always" if that matters. A server process that is
//     killed forgets nothing.
//   - A bucket with one replica, whose server does not come back: nobody can acquire or release.
//   - A bucket that is deleted and created anew, or restored from a backup: revisions and tokens
//     begin anew, and an old holder may be back. Wait for a lease before clients start again. An open
//     client writes no more, and its holds are lost, once it finds the time of creation changed. It
//     looks before it makes a key, after a refused write, and after a write whose revision is not
//     higher than all revisions before. So close clients before you make a bucket anew: a client
//     that has not looked yet may replace a key of the new bucket.
//   - A bucket that is deleted: its holders lose their locks with the next renewal, and waiters get
//     an error.
//   - A key that is deleted: its holder loses the lock with the next renewal. Others may get the
//     lock before that renewal, and tokens begin anew.
//
// [New] refuses buckets whose settings break locks: keys that expire, limits of size, memory
// storage, mirrors, sources, and others. A file system or account without room has the effect of a
// limit of size: renewals and releases are refused.
//
// # What happens when
//
//   - A process dies: a waiter gets the lock when it has seen the same revision for the lease, and
//     a hundredth more. A client that comes later waits as long from its first read on.
//   - The leader dies: there is another leader after 4 to 10 seconds. Reads and writes wait for the
//     new leader, and fail after the time of jetstream.WithDefaultTimeout, which is 5 seconds.
//     Holds with a longer lease go on. Waiters go on in any case.
//   - The connection ends: the library connects again, by default after 2 seconds, and at most 60
//     times. Set MaxReconnects(-1), a short ReconnectWait, and a PingInterval of some seconds. The
//     default of two minutes is longer than a lease.
//   - A reply is lost: the client reads the key. See package caslock.
//   - A right is missing: a server does not answer. The error names the subject, after the time of
//     [jetstream.WithDefaultTimeout] for writes.
//   - A value does not belong to a lock: [locks.ErrForeign]. The value stays unchanged.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers.
//
//	the request   a missing right, a deleted or sealed bucket, a connection that was closed
//	the login     authorization violation, authentication expired or revoked: a waiter waits on, and
//	              a release is repeated until the hold's end
//	the moment    a full disk or account, too many connections or requests, JetStream that starts
//	in doubt      an election, 503 and 5xx: as the moment, and the client finds out what became of a
//	              write
//
// The library closes a connection whose login was refused twice in the same way. A closed
// connection does not come back. Where passwords or tokens are replaced while a program runs, use
// nats.IgnoreAuthErrorAbort. The error of a refused write says which setting of the bucket was
// changed.
//
// # Names
//
// The key is the name, in which bytes other than letters, digits, - _ / and single inner dots are
// written as =XX. So rights can be given for names that begin with team. as $KV.locks.team.>. A key
// has 1024 bytes at most.
package natslock
