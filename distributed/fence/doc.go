// Package fence refuses stale fencing tokens. It is the last line of defence against a holder that
// writes after it has lost its lock. Such a holder was paused, or does not check its hold.
//
// No lock that ends by itself can prevent such writes. A holder may be stopped for any time between
// the moment when it was told that it holds and the moment when it writes. So the holder sends the
// token of its hold, [locks.Hold.Token], with each write. Tokens strictly increase from holder to
// holder, and the resource refuses smaller tokens than it has seen:
//
//	err := gate.Do("account/7", hold.Token(), func() error { return write(text) })
//	if errors.Is(err, fence.ErrStale) { ... another holder has had the lock since }
//
// All tokens of one resource come from one lock. The check is at the resource, and atomic with
// the write. A check before the write leaves room for a pause in between.
//
// # Where the resource is
//
// In one process: [Gate].
//
// On a Redis server: the Gate of package distributed/redislock, one script that compares and
// writes.
//
// In a table of an SQL database: the Gate of package distributed/sqllock, a column for the highest
// token seen. Without that Gate, the column is in the condition of the statement that writes. The
// statement affects no row if the token is stale:
//
//	UPDATE account SET balance = ?, fence = ? WHERE id = ? AND fence <= ?
//
// with the token in the second and the last place. The column is BIGINT NOT NULL DEFAULT 0.
//
// Behind an interface that knows nothing of tokens: no check is possible. Another feature of that
// interface may help, such as a write that is conditional on the version read before.
package fence
