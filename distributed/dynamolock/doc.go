// Package dynamolock has locks on DynamoDB, one row for each lock. Its client is a
// [caslock.Client]: see package caslock for the guarantees and for faults.
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	client, err := dynamolock.New(dynamodb.NewFromConfig(cfg), "locks")
//	...
//	defer client.Close(ctx)
//	err = locks.Do(ctx, client.Mutex("orders"), func(ctx context.Context) error {
//		hold, _ := locks.HoldFrom(ctx)
//		return save(ctx, order, hold.Token()) // ctx ends if the lock is lost
//	})
//
// # The table
//
// The partition key is a string, called "name" if [WithKey] does not say otherwise. The table must
// not have a sort key. [CreateTable] makes such a table, and [CheckTable] finds the mistakes of a
// table. A row has two more attributes, both of them texts:
//
//	name      the prefix and the name of the lock
//	lock      the document, see caslock.JSON
//	version   a random text, new with each write
//
// The table may have rows of other programs too. A row without these attributes is not touched:
// methods return [locks.ErrForeign]. A row stays when its lock is released, and keeps the token.
// See [caslock.Client.Sweep] for the risks of a deletion.
//
// # What it costs
//
// Each read is strongly consistent and each write conditional. With a row of less than 1 KB, a read
// is one read unit, and a write is one write unit, also if its condition fails. The row of a short
// name and label has less than 500 bytes.
//
//	acquisition            a read and a write; a write if no other process has had the lock since
//	release                a write
//	renewal                a write for each third of a lease and each hold
//	try of a held lock     a read
//	wait                   a read for each pause, see WithPolling
//
// Names and Sweep read the whole table.
//
// # Faults
//
// In addition to the faults of package caslock:
//
//   - The table lacks capacity: the request is repeated, with pauses. Waiters keep waiting. A hold
//     is lost only if no renewal is accepted until its end.
//   - DynamoDB answers that a write has failed, or does not answer within five seconds: the client
//     finds out whether the write was carried out. The library repeats nothing.
//   - The table has a time to live: no effect, since no attribute of the rows is a number. If
//     another program adds a number to a row, the next write removes the number. Until then the row
//     may be deleted. The holder then loses the lock with the next renewal, and tokens begin anew.
//   - The table is missing or has another key, or a right is missing: the error says which.
//   - The clock of this machine is wrong: the library corrects its signatures by the time in the
//     first answer.
//
// # Errors
//
// Each error of a request has a class. See [lease.ErrRefused] for the consequences of each class.
// The table in classes.go has all answers.
//
//	the request   a missing right, a missing table, another key
//	the login     ExpiredTokenException, UnrecognizedClientException, InvalidSignatureException and
//	              others: a waiter waits on, and a release is repeated until the hold's end
//	the moment    ProvisionedThroughputExceededException and others that throttle, a transaction
//	in doubt      InternalServerError, 5xx, 408: as the moment, and the client finds out what became
//	              of a write
//
// # Global tables
//
// A global table cannot hold locks, unless its consistency between regions is strong: each region
// accepts writes, and the last writer wins. If all clients use one region of the table, locks work,
// but an outage of that region stops all clients. A table of strong consistency is expected to
// work, by Amazon's documentation, and was not tested. DAX is a cache and has a client of its own,
// which [New] does not accept.
package dynamolock
