// Package sqllock has locks on SQL databases, over database/sql: PostgreSQL, MySQL and MariaDB, and SQLite. It brings no driver. Each
// kind of lock is a [locks.Provider]: it takes the place of the locks of one process.
//
//	db, err := sql.Open("pgx", dsn)
//	...
//	provider, err := sqllock.NewTable(db)
//	...
//	err = provider.CreateSchema(ctx) // or print it: sqllock.Schema
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	kind        what a lock is                       ends by itself with    token  connection    on
//	Table       a row: owner, token, end of lease    its lease              yes    none          all
//	Row         SELECT ... FOR UPDATE on a row       the transaction        no     one a holder  all; SQLite as a whole
//	Advisory    pg_advisory_lock, GET_LOCK           the session            no     one a holder  PostgreSQL, MySQL
//	Versioned   a version column of your table       nobody holds it                none          all
//
// The first three give [lease.Lock]: owned by a goroutine or an explicit owner, reentrant, watched while held. Who waits in this process
// and what re-entry costs is told there. [Row.Do] does the guarded work in the transaction that has the lock, and [Fence] keeps
// those from a table who come too late.
//
// # Which one
//
// If the work is done in the same database, [Row.Do]: what a holder has done that lost its connection is undone, and there is no lease to
// be late for. If holders are many, or hold for long, [Table]: it needs no connection in between. If no table is wanted, or locks
// shall be free as soon as a process dies, [Advisory]. If changes of a value seldom meet, [Versioned].
//
// # Guarantees
//
// As long as one database server keeps what it has committed, and does not set its clock forward, there is one holder of a lock in a Table at a
// time among those whose hold is not lost, and every holder is told of its loss before anybody else can get the lock:
// [locks.Hold.Lost], [locks.Hold.Err] and the context of [locks.Do] say so. Ends of leases are written and compared by the
// database's clock; nothing depends on the clock of a client, but that of SQLite, which is the machine's. Tokens strictly increase, and stay
// when a lock is free: the row is never deleted.
//
// A Row or an Advisory depends on no clock. Its session is asked each third of the lease whether it still has the lock, and is closed if it does
// not answer for the time of the lease, after the holder was told. The server ends sessions by itself too: because an administrator says so,
// because it is restarted, or because of a limit such as wait_timeout, idle_session_timeout or
// idle_in_transaction_session_timeout, which has to exceed the lease. Then others can get the lock at once, and the holder finds out up to a third of
// the lease later. Take a short one, [lease.WithTTL], to know sooner, or Row.Do, which needs not know.
//
// A program that was paused, or does not look, goes on to work after its loss. Against that a resource needs to check the token of a Table:
// [Fence].
//
// # What happens when
//
//   - A process dies: its locks in a Table are free when their leases are over, 30 seconds at most by default, others when the server sees the end
//     of the connection: at once, unless it was the machine or the network that died.
//   - The server cannot be reached: holds are lost a margin before the end of their leases. An interruption that is shorter does nothing.
//   - A reply is lost: in a Table, of an acquisition, the database is asked who has the lock; of a release, it is sent again. Neither counts twice.
//     With a Row or an Advisory the connection is closed, and the lock with it: an acquisition is an error, a release is [locks.ErrLost],
//     since the session may have ended at any time before.
//   - A context ends: the call returns at once, and what was under way is undone when it is known. No connection stays pinned.
//   - A lock is released: who waits asks again after a pause of up to 100 milliseconds, see [WithBackoff], or on PostgreSQL with
//     [WithListener] at once. Waiters use a connection while they ask only.
//   - Somebody changes the row: the holder finds out at its next renewal, a third of the lease later at most, and never touches the lock of
//     a successor.
//   - A deadlock, a serialization failure or SQLITE_BUSY: the request is repeated, and somebody who asks for a lock waits.
//   - The server cannot be reached, has no connection to spare or is read only for a while: who waits already goes on to, who comes then gets the
//     error.
//   - The table is not there: [ErrNoTable]. A Table in MySQL or MariaDB looks at it once, before its first acquisition. It is another one, or names are not unique in it, or in MySQL not VARBINARY, which alone tells "a" from
//     "A" and "a ": [locks.ErrForeign].
//   - The database is failed over to a replica that had not heard of a commit, or its clock is set forward: two may hold a lock of a Table until the
//     first has asked for its renewal.
//   - A pooler gives each transaction the session that is free: an Advisory, and whatever has [WithListener], is refused at its
//     first acquisition with [ErrUnsupportedTopology], since a probe of two connections finds the pooler. A Table and a Row
//     without a listener work. An Advisory also asks for its session when it takes and when it renews a lock.
//
// # Drivers
//
// A driver has to give up when a context ends, also while it connects. database/sql connects without the caller's context when its pool
// is limited, so a time limit for connecting belongs into what the driver gets: connect_timeout for pgx and pq; timeout and readTimeout for
// go-sql-driver/mysql, the latter longer than the longest request. pq waits for the server while it gives up: with it, a hold is lost in time, but
// what the connection has ends only when the network says so.
//
// Behind a pooler that gives its sessions out by transaction no statement can be prepared beforehand, unless the pooler knows of that: pgx
// needs default_query_exec_mode=exec or simple_protocol, and pq binary_parameters=yes.
//
// In MySQL autocommit has to be on, which it is by default; a Table refuses to work without.
//
// In SQLite, set busy_timeout and WAL: _pragma=busy_timeout(1000)&_pragma=journal_mode(WAL) for modernc.org/sqlite.
//
// # When not to use it
//
// If everything is in one process, take packages reentrant or named. If locks change hands thousands of times a second, take a store in memory.
//
// # Limits
//
// Names are text of 1 to 255 bytes, without NUL, compared byte by byte. They are only ever arguments of statements; tables and columns are
// checked to be identifiers. A hold in a Table costs two writes and one each third of the lease. A row stays for each name that was ever
// locked. Delete rows only of names that will not come back, or their tokens begin anew.
package sqllock
