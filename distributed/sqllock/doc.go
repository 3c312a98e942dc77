// Package sqllock has locks on SQL databases, over database/sql: PostgreSQL, MariaDB and MySQL,
// and SQLite. It brings no driver. A [Table] and an [Advisory] are a [locks.Provider]: they take
// the place of the locks of one process.
//
//	db, err := sql.Open("pgx", dsn)
//	...
//	provider, err := sqllock.NewTable(db)
//	...
//	err = provider.CreateSchema(ctx) // or print it: sqllock.Schema
//	...
//	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error { ... })
//
//	kind       what a lock is                     ends by itself with  token  connection    on
//	Table      a row: owner, token, end of lease  its lease            yes    none          all
//	Row        SELECT ... FOR UPDATE on a row     the transaction      no     one a worker  all
//	Advisory   pg_advisory_lock, GET_LOCK         the session          no     one a holder  servers
//	Versioned  a version column of your table     without a holder            none          all
//
// A lock of a Table or an Advisory is a [lease.Mutex]: owned by a goroutine or an explicit owner,
// reentrant, and watched while held. See package lease for queueing inside a process and for the
// cost of re-entry. [Row.Do] does the guarded work in the transaction that holds the lock, and
// [Gate] refuses writes that come too late.
//
// The tests run on PostgreSQL 15, MariaDB 10.11 and SQLite. The same tests passed by hand on MySQL
// 9.7.
//
// # Which one
//
// If the work is done in the same database, use [Row.Do]: the work of a holder that lost its
// connection is undone, and no lease can end too early. If holders are many, or hold for long, use
// [Table]: a holder needs no connection between requests. If you want no table, or the locks of a
// dead process must be free at once, use [Advisory]. If changes of a value seldom meet, use
// [Versioned].
//
// # Guarantees
//
// At most one holder of a lock in a Table has a hold that is not lost. Every holder is told of its
// loss before another owner can get the lock, by [locks.Hold.Lost], [locks.Hold.Err] and the
// context of [locks.Do]. This holds as long as one database server keeps what it has committed, and
// does not set its clock forward. The database's clock alone writes and compares the ends of
// leases. No client's clock matters, except that SQLite uses the machine's. Tokens strictly
// increase. A free lock keeps its token: the row is never deleted.
//
// A Row depends on no clock and no lease: if the transaction ends before its commit, all of the
// work is undone.
//
// An Advisory depends on no clock. The client asks the session at each third of the lease whether
// it still has the lock. The client tells the holder and closes the session if the session does not
// answer for the time of the lease. The server may also end a session by itself, at an
// administrator's order, at a restart, or by a limit: wait_timeout or idle_session_timeout, which
// must exceed the lease. Then another owner can get the lock at once, and the holder finds out up
// to a third of the lease later. In that case the release and [locks.Do] return [locks.ErrLost]. A
// short lease makes the holder find out sooner, see [WithTTL].
//
// A program that was paused, or does not check its hold, goes on to work after its loss. To refuse
// such work, a resource must check the token of a Table, see [Gate].
//
// # What is different here
//
// A lock is a [lease.Mutex], with the rules of that type. On a database:
//
//   - [lease.Mutex.ForceUnlock] frees a lock of a [Table]. For an [Advisory] the method returns
//     [errors.ErrUnsupported].
//   - [lease.Mutex.Inspect] on a [Table] takes one statement, and one more for each process in the
//     answer. With [WithQueue] the answer has all waiters, in order of arrival. Otherwise it has
//     the waiters of this client.
//   - [lease.Mutex.Inspect] on an [Advisory] takes one statement. The label of a holder is the
//     application_name of its session, and the host its address. MySQL and MariaDB show sessions of
//     other users only with the privilege PROCESS. The answer has only the waiters of this client.
//
// # What happens when
//
//   - A process dies: its locks in a Table are free when their leases are over, after 30 seconds at
//     most by default. Its other locks are free when the server sees the end of the connection: at
//     once, unless the machine or the network died. A dead waiter of a queue stops the waiters
//     behind it for the time of its own lease, [DefaultQueueWait] at most, which is 30 seconds.
//   - The server cannot be reached: holds are lost a margin before the end of their leases. A
//     shorter interruption does no harm. A request without an answer ends after
//     [DefaultRequestTimeout], 2 seconds, with [ErrTimeout]. The same is true of a request that
//     gets no connection of the pool for so long. Slower databases need [WithRequestTimeout].
//   - A reply is lost: a Table asks the database again after an acquisition, and sends a release
//     again. Neither counts twice. An Advisory closes the connection, which also frees the lock. An
//     acquisition then returns an error, and a release returns [locks.ErrLost], since the session
//     may have ended at any time before. A Row returns [locks.ErrLost] if the reply to its commit
//     is lost.
//   - A context ends: the call returns at once. A request under way is undone when its outcome is
//     known. All connections go back to the pool.
//   - A lock is released: waiters ask again after a pause of up to 100 milliseconds, see
//     [WithBackoff], or on PostgreSQL with [WithListener] at once. Of the waiters of a queue only
//     the first then asks. Waiters use a connection only while they ask. With [WithBlockingWait]
//     the waiters of an Advisory and a Row wait in the server, and keep a connection.
//   - Another program changes the row: the holder finds out at its next renewal, a third of the
//     lease later at most, and never touches the lock of a successor.
//   - ForceUnlock frees a lock of a Table: a holder elsewhere hears of it at once on PostgreSQL
//     with [WithListener]. Otherwise it finds out at its next renewal, after a third of the lease
//     at most, which is 10 seconds by default. Until then two owners may work.
//   - A deadlock, a serialization failure or SQLITE_BUSY: the request is repeated, and an
//     acquisition waits.
//   - The server cannot be reached for a while: waiters keep waiting, new callers get the error. If
//     the server lacks a spare connection or is read only, LockContext waits from the first request
//     on, see [lease.WithRetry].
//   - The table is not there: [ErrNoTable]. A table with another layout is [locks.ErrForeign]:
//     other columns, names that are not unique, or, in MySQL, names that are not VARBINARY, the
//     only type that tells "a" from "A" and "a ". A table of an engine without transactions, such
//     as MyISAM, Aria or MEMORY, is [locks.ErrForeign] too: its locks would exclude nobody. In
//     MySQL and MariaDB a Table and a Row check the table once, before the first acquisition.
//   - The database fails over to a replica that lacks a commit, or its clock is set forward: two
//     owners may hold a lock of a Table until the first owner asks for its renewal.
//   - A pooler gives each transaction any free session: on PostgreSQL, the first acquisition of an
//     Advisory returns [ErrUnsupportedTopology]. So does the first acquisition of any kind with
//     [WithListener], and of a Row with [WithBlockingWait]. The check uses two connections, and
//     finds the pooler also under other traffic. It does not find a pooler that gives each
//     connection its last session again, as long as that session is free. A Table and a Row without
//     these options work behind a pooler. An Advisory also checks its session at each acquisition
//     and renewal.
//
// # Errors
//
// Each error of a database refuses the request, the login, or only this moment, see
// [lease.ErrRefused]. The source has tables of the SQLSTATEs of PostgreSQL, the numbers of MySQL
// and MariaDB, and the codes of SQLite, in classes.go.
//
//	refused                  such as                               LockContext         unlock
//	the request              42501, 42P01, 1142, 1146              the error           the error
//	the login                28P01, 3D000, 1045, 1049, 26000       the error; waiters  the error
//	                                                               wait on
//	this moment              25006, 53300, 57P03, 57014, 1040,     waits               repeated
//	                         1290, 1114, SQLITE_FULL
//	no connection was made   refused connections                   the error; waiters  repeated
//	                                                               wait on
//	the session or the       57P01, 25P03, 1053, 1317, 1969,       waits               repeated
//	statement has ended      3024, 4031
//	no answer, may be done   08006, XX000, 1180                    the error; waiters  repeated
//	                                                               wait on
//	another transaction      40001, 55P03, 1205, 1213,             waits               repeated
//	                         SQLITE_BUSY
//
// A [Row] and a [Table.Semaphore] do the same. No error of a renewal ends a hold in a Table. The
// hold of an [Advisory] goes on after an error that refuses only a statement. After the error of an
// unlock, the release of a Table is repeated in the background until the end of the lease. An
// Advisory closes the connection, which frees the lock.
//
// # Drivers
//
// By default the package tells a [Postgres], a [MySQL] and an [SQLite] by the type of the driver,
// see [Detect]. Other drivers need [WithDialect]. database/sql connects without the caller's
// context when its pool is limited. So set a time limit for connecting in the driver:
// connect_timeout for pgx and pq, timeout and readTimeout for go-sql-driver/mysql. The readTimeout
// must exceed the longest request. The driver pq waits for the server while it gives up. A hold is
// lost in time, but the lock and the transaction of its connection end only when the network
// reports the failure.
//
// The driver go-sql-driver/mysql prepares each statement, which takes a round trip more, unless its
// parameter interpolateParams is true. With the parameter, a lock and an unlock on MariaDB take 0.3
// ms in place of 0.47. Package open sets it.
//
// Behind a pooler that gives each transaction any free session, statements cannot be prepared
// beforehand, unless the pooler supports it: pgx needs default_query_exec_mode=exec or
// simple_protocol, and pq binary_parameters=yes. Versions of pgbouncer before 1.19 crash when
// clients cancel queries. The end of a context cancels a query.
//
// # Settings of a session
//
// In MySQL and MariaDB some variables of the session change what the statements mean. Their
// defaults are right. With other values the first use of a Table, a Row, a semaphore, a Versioned
// or a Gate is refused, and the error names the variable. The variables are read once.
//
//	variable                    has to be                  because otherwise
//	autocommit                  on, but for a Row          nothing is committed
//	completion_type             NO_CHAIN                   the pool gets open transactions
//	sql_mode                    without                    a free lock has no owner to compare
//	                            EMPTY_STRING_IS_NULL
//	sql_select_limit            DEFAULT                    holds are missing in the answer to a renewal
//	unique_checks               on                         two rows may have one name
//	character_set_connection    character_set_client       a name is other bytes than elsewhere
//	timestamp                   DEFAULT                    leases never end
//	transaction_isolation       READ-COMMITTED or more,    permits are counted that are not given
//	                            for a semaphore
//
// Other values of sql_mode, the other isolation levels, transaction_read_only, time_zone,
// sql_safe_updates, sql_auto_is_null, innodb_lock_wait_timeout and limits of time do not change the
// meaning. A statement that they refuse or end is an error of the classes above. With
// innodb_flush_log_at_trx_commit other than 1, or sql_log_bin off, a crash or a failover can forget
// an acquisition.
//
// In PostgreSQL client_encoding must be UTF8 for names that are not ASCII, unless the database is
// SQL_ASCII. The first acquisition of such a name checks client_encoding. search_path decides where
// a table without a schema is, see [WithTable]. Isolation, time zone, formats of dates,
// lock_timeout and statement_timeout do not change the meaning. With synchronous_commit off, a
// crash of the server can forget an acquisition.
//
// The program that uses [Gate.Check] has its own transaction, whose settings Gate does not check.
//
// In SQLite, set busy_timeout and WAL: _pragma=busy_timeout(1000)&_pragma=journal_mode(WAL) for
// modernc.org/sqlite.
//
// # When not to use it
//
// In one process, use package reentrant or named. If locks change hands thousands of times a
// second, use a store in memory.
//
// # Semaphores
//
// [Table.Semaphore] has permits with a lease, in tables of their own. Permits follow the rules
// above for a lock of a Table, except for ForceUnlock.
//
// # Inspection
//
// [lease.Mutex.Inspect] returns the holder of a lock and its waiters. For that, each process keeps
// its label, host and id in a table of its own. It writes a row once a minute at most. CreateSchema
// adds this table to an earlier layout. Without it locks work the same, but Inspect knows less.
//
// # Limits
//
// Names are text of 1 to [MaxName] bytes, which is 255, without NUL, compared byte by byte.
// Statements get names only as arguments. Names of tables and columns must be identifiers, which is
// checked. A hold in a Table costs two writes, and one more at each third of the lease. A row stays
// for each name that was ever locked. Delete rows only of names that will not come back: their
// tokens would begin anew.
package sqllock
