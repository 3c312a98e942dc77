// Package fence refuses stale fencing tokens: the last line of defence against a holder that goes on to write after it has
// lost its lock, because its process was paused, or because it does not look.
//
// No lock that ends by itself can prevent that. A holder may be stopped between the moment when it was told that it holds and
// the moment when it writes, for any time. So the holder sends the token of its hold along, [locks.Hold.Token], which
// strictly increases from holder to holder, and the resource refuses what comes with a smaller token than it has seen:
//
//	err := gate.Do("account/7", hold.Token(), func() error { return write(text) })
//	if errors.Is(err, fence.ErrStale) { ... somebody else has held the lock since }
//
// Tokens of one resource must come from one lock. The check has to be where the resource is, and one with the write. A check
// that is made first, and followed by the write, leaves room for a pause in between.
//
// # Where the resource is
//
// In one process: [Gate].
//
// On a Redis server: the Gate of package distributed/redislock, one script that compares and writes.
//
// In a table of an SQL database: a column for the highest token seen, in the condition of the statement that writes. No row is
// affected if the token is stale:
//
//	UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?
//
// with the token in the second and the last place. The column is a BIGINT, NOT NULL, and 0 at first.
//
// Behind an interface of somebody else's, which knows nothing of tokens: nowhere. What it offers in place of them may do, such as
// a write that is conditional on the version read before.
package fence
